package io.kvcache.tiers;

import io.kvcache.core.store.TierPort;
import io.kvcache.tiers.movement.TierScheduler;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;

/// A block that was on disk alone when it was looked up: parts of it can be read where it lies.
///
/// **Threads.** Any.
public final class DiskBlock {

    private final TierPort tierPort;
    private final TierScheduler tierScheduler;
    private final TierPort.DiskCopy copy;

    DiskBlock(TierPort tierPort, TierScheduler tierScheduler, TierPort.DiskCopy copy) {
        this.tierPort = tierPort;
        this.tierScheduler = tierScheduler;
        this.copy = copy;
    }

    /// Returns the block's size.
    public int bytes() {
        return copy.block().bytes();
    }

    /// Reads some of its bytes, and from the disk only what holds and proves them: pages of 4 KiB, or chunks of 64 KiB
    /// of a coded block, and their sums. The block stays where it is.
    ///
    /// @param from the first byte
    /// @param target of as many bytes as are wanted, at least one, on the heap or off it; it must be left
    ///     alone until the outcome
    /// @return completed with true when the bytes are there. With false when the block is to be acquired
    ///     instead: it is not there any more, is small, its disk has no sums of it, or they were not right. On a
    ///     thread that must not be held up
    /// @throws IndexOutOfBoundsException when the block has no such bytes
    public CompletableFuture<Boolean> read(int from, MemorySegment target) {
        if (from < 0 || target.byteSize() == 0 || from + target.byteSize() > bytes()) {
            throw new IndexOutOfBoundsException(
                    target.byteSize() + " bytes from " + from + " on; this block has " + bytes());
        }
        return tierScheduler.readRange(copy, from, target).thenApply(there -> {
            if (there) {
                tierPort.onUsed(copy.block());
            }
            return there;
        });
    }
}
