package io.kvcache.tiers;

import io.kvcache.core.DiskBlock;
import io.kvcache.core.store.TierPort;
import io.kvcache.tiers.movement.TierScheduler;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;

/// Reads parts of a block or object from the disk that it is on.
final class TieredDiskBlock implements DiskBlock {

    private final TierPort tierPort;
    private final TierScheduler tierScheduler;
    private final TierPort.DiskCopy copy;
    private final Runnable onRead;

    /// @param onRead run for each part that a caller gets, on a thread that must not be held up
    TieredDiskBlock(TierPort tierPort, TierScheduler tierScheduler, TierPort.DiskCopy copy, Runnable onRead) {
        this.tierPort = tierPort;
        this.tierScheduler = tierScheduler;
        this.copy = copy;
        this.onRead = onRead;
    }

    @Override
    public int bytes() {
        return copy.block().bytes();
    }

    @Override
    public int checksum() {
        return copy.block().checksum();
    }

    @Override
    public CompletableFuture<Boolean> read(int from, MemorySegment target, Runnable onEnd) {
        if (from < 0 || target.byteSize() == 0 || from + target.byteSize() > bytes()) {
            throw new IndexOutOfBoundsException(
                    target.byteSize() + " bytes from " + from + " on; this block has " + bytes());
        }
        CompletableFuture<Boolean> outcome = new CompletableFuture<>();
        var _ = tierScheduler.readRange(copy, from, target).thenAccept(there -> {
            onEnd.run();
            if (there && !outcome.isDone()) {
                tierPort.onUsed(copy.block());
                onRead.run();
            }
            outcome.complete(there);
        });
        return outcome;
    }
}
