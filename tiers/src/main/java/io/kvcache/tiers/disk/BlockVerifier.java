package io.kvcache.tiers.disk;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Reads blocks to find out whether they are what their entries say, some at a time, in pieces, so that memory
/// does not depend on how large they are.
final class BlockVerifier {

    /// Read at a time: a disk is as fast with pieces of this size as with larger ones.
    private static final int PIECE_BYTES = 256 << 10;

    /// Enough pieces on their way for a disk to be busy.
    private static final int MAX_READS = 16;

    static final long BYTES = (long) MAX_READS * PIECE_BYTES;

    private final DeviceOperationQueue deviceOperationQueue;
    private final RegionTable regionTable;
    private final Deque<ReadBuffer> idle = new ArrayDeque<>();

    /// @param memory [#BYTES] of it
    BlockVerifier(DeviceOperationQueue deviceOperationQueue, RegionTable regionTable, MemorySegment memory) {
        this.deviceOperationQueue = deviceOperationQueue;
        this.regionTable = regionTable;
        for (int i = 0; i < MAX_READS; i++) {
            idle.add(new ReadBuffer(memory.asSlice((long) i * PIECE_BYTES, PIECE_BYTES)));
        }
    }

    /// Whether no more can be read before one has ended.
    boolean isFull() {
        return idle.isEmpty();
    }

    boolean isIdle() {
        return idle.size() == MAX_READS;
    }

    /// Begins to read a block; not when [#isFull].
    void read(Region region, DiskEntry entry, Consumer<TierRead.Outcome> then) {
        idle.remove().begin(region, entry, then);
    }

    private final class ReadBuffer {
        private final MemorySegment buffer;
        private ChunkedCrc crc = new ChunkedCrc();
        private long at;
        private long left;
        private @Nullable DiskEntry entry;
        private Consumer<TierRead.Outcome> callback = _ -> {};

        ReadBuffer(MemorySegment buffer) {
            this.buffer = buffer;
        }

        void begin(Region region, DiskEntry next, Consumer<TierRead.Outcome> follow) {
            crc = new ChunkedCrc();
            entry = next;
            callback = follow;
            at = regionTable.offset(region, next.page());
            left = next.bytes();
            read();
        }

        private void read() {
            long bytes = Math.min(left, PIECE_BYTES);
            long pages = Math.ceilDiv(bytes, DiskGeometry.PAGE_BYTES) * DiskGeometry.PAGE_BYTES;
            deviceOperationQueue.add(
                    DeviceOperation.read(buffer.asSlice(0, pages), at, outcome -> onRead(bytes, outcome)));
        }

        private void onRead(long bytes, IoOutcome outcome) {
            crc.update(buffer.asSlice(0, bytes));
            at += bytes;
            left -= bytes;
            if (!outcome.isDone()) {
                finish(TierRead.Outcome.UNREADABLE);
            } else if (left > 0) {
                read();
            } else {
                boolean good = entry != null && crc.value() == entry.checksum();
                finish(good ? TierRead.Outcome.SUCCESS : TierRead.Outcome.CORRUPT);
            }
        }

        private void finish(TierRead.Outcome outcome) {
            idle.add(this);
            callback.accept(outcome);
        }
    }
}
