package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.Map;

/// Reads blocks, and lets nothing through that has not the block's checksum.
///
/// A region is not written over while somebody reads from it; so what a read meets is what lay there when it
/// was taken.
final class BlockReads {

    private final Io io;
    private final Regions regions;
    private final DiskLogSink sink;
    private final int limit;
    private final Checks checks;
    private final Map<ReadOutcome, Long> counts = new EnumMap<>(ReadOutcome.class);
    private int flying;
    private long stale;

    BlockReads(Io io, Regions regions, DiskLogSink sink, int limit, Checks checks) {
        this.io = io;
        this.regions = regions;
        this.sink = sink;
        this.limit = limit;
        this.checks = checks;
    }

    Admission read(BlockRead read) {
        if (!io.condition().reads()) {
            return Admission.REFUSED;
        }
        Region region = regions.at(read.place());
        if (!region.holds(read.place())) {
            stale++;
            return Admission.STALE;
        }
        if (flying >= limit) {
            return Admission.FULL;
        }
        flying++;
        new Reading(read, region).start();
        return Admission.TAKEN;
    }

    /// Follows up what was checked.
    ///
    /// @return how many reads have ended
    int pump() {
        return checks.pump(io.transfers().idle());
    }

    boolean idle() {
        return flying == 0;
    }

    DiskLogStats.Reads stats() {
        return new DiskLogStats.Reads(
                counts.getOrDefault(ReadOutcome.GOOD, 0L),
                counts.getOrDefault(ReadOutcome.IO_ERROR, 0L),
                counts.getOrDefault(ReadOutcome.CHECKSUM_ERROR, 0L),
                stale);
    }

    private final class Reading {
        private final BlockRead read;
        private final Pieces pieces;
        private final Region region;
        private int left;
        private boolean failed;

        Reading(BlockRead read, Region region) {
            this.read = read;
            this.pieces = new Pieces(read.pieces(), read.bytes());
            this.region = region;
        }

        void start() {
            region.startReading();
            left = pieces.spans().size();
            long offset = regions.offset(region, DiskPlace.page(read.place()));
            for (MemorySegment span : pieces.spans()) {
                io.transfers().add(Transfer.load(span, offset, this::ended));
                offset += span.byteSize();
            }
        }

        private void ended(IoOutcome outcome) {
            failed |= !outcome.isDone();
            left--;
            if (left == 0) {
                region.endReading();
                if (failed) {
                    end(ReadOutcome.IO_ERROR);
                } else {
                    checks.check(
                            pieces,
                            read.checksum(),
                            right -> end(right ? ReadOutcome.GOOD : ReadOutcome.CHECKSUM_ERROR));
                }
            }
        }

        private void end(ReadOutcome outcome) {
            flying--;
            counts.merge(outcome, 1L, Long::sum);
            sink.read(read.tag(), outcome);
        }
    }
}
