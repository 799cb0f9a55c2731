package io.kvcache.server.quota;

import io.kvcache.core.DiskBlock;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Some bytes of a value on their way from a disk, within a budget.
///
/// A disk that hangs keeps the bytes long after the request has timed out. They count for the budget
/// until the disk is done with them.
///
/// @param checksum of the whole value
/// @param bytes to be left alone until they are there
/// @param there completed with whether they are; false when it takes too long
@SuppressWarnings("ArrayRecordComponent") // never compared
public record PartRead(int checksum, byte[] bytes, CompletableFuture<Boolean> there) {

    /// Begins to read.
    ///
    /// @param timeoutNanos how long it may take
    /// @return null when the budget has no room
    /// @throws IndexOutOfBoundsException when the value has no such bytes
    public static @Nullable PartRead start(
            DiskBlock block, long from, long length, ByteBudget budget, long timeoutNanos) {
        Objects.checkFromIndexSize(from, length, block.bytes());
        if (!budget.tryAcquire(length)) {
            return null;
        }
        byte[] bytes = new byte[Math.toIntExact(length)];
        CompletableFuture<Boolean> read =
                block.read(Math.toIntExact(from), MemorySegment.ofArray(bytes), () -> budget.release(length));
        return new PartRead(block.checksum(), bytes, read.completeOnTimeout(false, timeoutNanos, TimeUnit.NANOSECONDS));
    }
}
