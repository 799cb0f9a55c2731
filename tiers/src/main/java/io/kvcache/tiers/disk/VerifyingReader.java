package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.Map;

/// Reads blocks, and lets nothing through that has not the block's checksum.
///
/// A region is not written over while somebody reads from it; so what a read meets is what lay there when it
/// was taken.
final class VerifyingReader {

    private final LogIo io;
    private final RegionTable regionTable;
    private final DiskLogCompletions sink;
    private final int limit;
    private final ChecksumPool checksumPool;
    private final Map<ReadOutcome, Long> counts = new EnumMap<>(ReadOutcome.class);
    private int inFlight;
    private long stale;

    VerifyingReader(LogIo io, RegionTable regionTable, DiskLogCompletions sink, int limit, ChecksumPool checksumPool) {
        this.io = io;
        this.regionTable = regionTable;
        this.sink = sink;
        this.limit = limit;
        this.checksumPool = checksumPool;
    }

    LogSubmitResult read(LogReadRequest read) {
        if (!io.logHealth().canRead()) {
            return LogSubmitResult.REJECTED;
        }
        Region region = regionTable.regionAt(read.address());
        if (!region.isCurrent(read.address())) {
            stale++;
            return LogSubmitResult.STALE;
        }
        if (inFlight >= limit) {
            return LogSubmitResult.FULL;
        }
        inFlight++;
        new PendingRead(read, region).start();
        return LogSubmitResult.ACCEPTED;
    }

    /// Follows up what was checked.
    ///
    /// @return how many reads have ended
    int pump() {
        return checksumPool.pump(io.deviceOperationQueue().isIdle());
    }

    boolean isIdle() {
        return inFlight == 0;
    }

    DiskLogStats.Reads stats() {
        return new DiskLogStats.Reads(
                counts.getOrDefault(ReadOutcome.SUCCESS, 0L),
                counts.getOrDefault(ReadOutcome.IO_ERROR, 0L),
                counts.getOrDefault(ReadOutcome.CHECKSUM_ERROR, 0L),
                stale);
    }

    private final class PendingRead {
        private final LogReadRequest read;
        private final BufferList bufferList;
        private final Region region;
        private int left;
        private boolean failed;

        PendingRead(LogReadRequest read, Region region) {
            this.read = read;
            this.bufferList = new BufferList(read.pieces(), read.bytes());
            this.region = region;
        }

        void start() {
            region.startReading();
            left = bufferList.spans().size();
            long offset = regionTable.offset(region, LogAddress.page(read.address()));
            for (MemorySegment span : bufferList.spans()) {
                io.deviceOperationQueue().add(DeviceOperation.load(span, offset, this::onComplete));
                offset += span.byteSize();
            }
        }

        private void onComplete(IoOutcome outcome) {
            failed |= !outcome.isDone();
            left--;
            if (left == 0) {
                region.endReading();
                if (failed) {
                    finish(ReadOutcome.IO_ERROR);
                } else {
                    checksumPool.check(
                            bufferList,
                            read.checksum(),
                            right -> finish(right ? ReadOutcome.SUCCESS : ReadOutcome.CHECKSUM_ERROR));
                }
            }
        }

        private void finish(ReadOutcome outcome) {
            inFlight--;
            counts.merge(outcome, 1L, Long::sum);
            sink.onRead(read.tag(), outcome);
        }
    }
}
