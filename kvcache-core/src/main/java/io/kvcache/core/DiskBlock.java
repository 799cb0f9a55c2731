package io.kvcache.core;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;

/// A block or object that was on disk alone when it was looked up: parts of it can be read where it lies.
///
/// Each part that is read counts as a request for the block that a slower tier has answered. A part
/// that is not there, or that the caller has given up, does not count: acquiring the block does.
///
/// **Threads.** Any.
public interface DiskBlock {

    /// Largest part that is read alone.
    int MAX_PART_BYTES = 1 << 20;

    /// Returns its size, of an object with the key behind it.
    int bytes();

    /// The checksum of all of it, as [ObjectView#checksum] has it of an object in host memory.
    int checksum();

    /// Returns whether a part of this length is better read alone than with the rest: up to half of the block, and
    /// up to [#MAX_PART_BYTES].
    default boolean isPart(long length) {
        return isPart(length, bytes());
    }

    /// As [#isPart(long)], of a block of this size.
    static boolean isPart(long length, int blockBytes) {
        return length > 0 && length <= Math.min(MAX_PART_BYTES, blockBytes / 2);
    }

    /// Reads some of its bytes, and from the disk only what holds and proves them: pages of 4 KiB, or chunks of 64 KiB
    /// of a coded block, and their sums. The block stays where it is.
    ///
    /// @param from the first byte
    /// @param target of as many bytes as are wanted, at least one, on the heap or off it; it must be left
    ///     alone until `onEnd`
    /// @param onEnd run once, when the disk is done with the target. That is before the outcome, or long
    ///     after it if the caller has given up. On a thread that must not be held up
    /// @return completed with true when the bytes are there. With false when the block is to be acquired
    ///     instead: it is not there any more, is small, its disk has no sums of it, or they were not right. On a
    ///     thread that must not be held up. A caller gives up by completing it, as
    ///     [CompletableFuture#completeOnTimeout] does
    /// @throws IndexOutOfBoundsException when the block has no such bytes; then `onEnd` is not run
    CompletableFuture<Boolean> read(int from, MemorySegment target, Runnable onEnd);

    /// As [#read(int, MemorySegment, Runnable)], for a caller that waits for the outcome.
    default CompletableFuture<Boolean> read(int from, MemorySegment target) {
        return read(from, target, () -> {});
    }
}
