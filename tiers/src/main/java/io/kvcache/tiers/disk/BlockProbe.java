package io.kvcache.tiers.disk;

import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Reads blocks to find out whether they are what their entries say, some at a time, in pieces, so that memory
/// does not depend on how large they are.
final class BlockProbe {

    /// Read at a time: a disk is as fast with pieces of this size as with larger ones.
    private static final int PIECE_BYTES = 256 << 10;

    /// Enough pieces on their way for a disk to be busy.
    private static final int LANES = 16;

    static final long BYTES = (long) LANES * PIECE_BYTES;

    private final Transfers transfers;
    private final Regions regions;
    private final Deque<Lane> idle = new ArrayDeque<>();

    /// @param memory [#BYTES] of it
    BlockProbe(Transfers transfers, Regions regions, MemorySegment memory) {
        this.transfers = transfers;
        this.regions = regions;
        for (int i = 0; i < LANES; i++) {
            idle.add(new Lane(memory.asSlice((long) i * PIECE_BYTES, PIECE_BYTES)));
        }
    }

    /// Whether no more can be read before one has ended.
    boolean full() {
        return idle.isEmpty();
    }

    boolean idle() {
        return idle.size() == LANES;
    }

    /// Begins to read a block; not when [#full].
    void read(Region region, DiskEntry entry, Consumer<ReadOutcome> then) {
        idle.remove().begin(region, entry, then);
    }

    private final class Lane {
        private final MemorySegment buffer;
        private ChunkedCrc crc = new ChunkedCrc();
        private long at;
        private long left;
        private @Nullable DiskEntry entry;
        private Consumer<ReadOutcome> then = _ -> {};

        Lane(MemorySegment buffer) {
            this.buffer = buffer;
        }

        void begin(Region region, DiskEntry next, Consumer<ReadOutcome> follow) {
            crc = new ChunkedCrc();
            entry = next;
            then = follow;
            at = regions.offset(region, next.page());
            left = next.bytes();
            read();
        }

        private void read() {
            long bytes = Math.min(left, PIECE_BYTES);
            long pages = Math.ceilDiv(bytes, Geometry.PAGE_BYTES) * Geometry.PAGE_BYTES;
            transfers.add(Transfer.read(buffer.asSlice(0, pages), at, outcome -> arrived(bytes, outcome)));
        }

        private void arrived(long bytes, IoOutcome outcome) {
            crc.update(buffer.asSlice(0, bytes));
            at += bytes;
            left -= bytes;
            if (!outcome.isDone()) {
                end(ReadOutcome.IO_ERROR);
            } else if (left > 0) {
                read();
            } else {
                boolean good = entry != null && crc.value() == entry.checksum();
                end(good ? ReadOutcome.GOOD : ReadOutcome.CHECKSUM_ERROR);
            }
        }

        private void end(ReadOutcome outcome) {
            idle.add(this);
            then.accept(outcome);
        }
    }
}
