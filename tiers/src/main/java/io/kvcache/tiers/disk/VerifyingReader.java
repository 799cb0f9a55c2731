package io.kvcache.tiers.disk;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierRead;
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
    private final LogListener sink;
    private final int limit;
    private final ChecksumPool checksumPool;
    private final Map<TierRead.Outcome, Long> counts = new EnumMap<>(TierRead.Outcome.class);
    private int inFlight;
    private long stale;

    VerifyingReader(LogIo io, RegionTable regionTable, LogListener sink, int limit, ChecksumPool checksumPool) {
        this.io = io;
        this.regionTable = regionTable;
        this.sink = sink;
        this.limit = limit;
        this.checksumPool = checksumPool;
    }

    SubmitResult read(long address, BufferList target, int checksum, long tag) {
        if (!io.logHealth().canRead()) {
            return SubmitResult.REJECTED;
        }
        Region region = regionTable.regionAt(address);
        if (!region.isCurrent(address)) {
            stale++;
            return SubmitResult.GONE;
        }
        if (inFlight >= limit) {
            return SubmitResult.RETRY;
        }
        inFlight++;
        new PendingRead(region, target, checksum, tag).start(address);
        return SubmitResult.ACCEPTED;
    }

    /// Follows up what was checked.
    ///
    /// @return how many reads have ended
    int pump() {
        return checksumPool.pump(io.isDeviceIdle());
    }

    boolean isIdle() {
        return inFlight == 0;
    }

    DiskLogStats.Reads stats() {
        return new DiskLogStats.Reads(
                counts.getOrDefault(TierRead.Outcome.SUCCESS, 0L),
                counts.getOrDefault(TierRead.Outcome.UNREADABLE, 0L),
                counts.getOrDefault(TierRead.Outcome.CORRUPT, 0L),
                stale);
    }

    private final class PendingRead {
        private final Region region;
        private final BufferList target;
        private final int checksum;
        private final long tag;
        private int left;
        private boolean failed;

        PendingRead(Region region, BufferList target, int checksum, long tag) {
            this.region = region;
            this.target = target;
            this.checksum = checksum;
            this.tag = tag;
        }

        void start(long address) {
            region.startReading();
            left = target.spans().size();
            long offset = regionTable.offset(region, LogAddress.page(address));
            for (MemorySegment span : target.spans()) {
                io.add(DeviceOperation.load(span, offset, this::onComplete));
                offset += span.byteSize();
            }
        }

        private void onComplete(IoOutcome outcome) {
            failed |= !outcome.isDone();
            left--;
            if (left == 0) {
                region.endReading();
                if (failed) {
                    finish(TierRead.Outcome.UNREADABLE);
                } else {
                    checksumPool.check(
                            target,
                            checksum,
                            right -> finish(right ? TierRead.Outcome.SUCCESS : TierRead.Outcome.CORRUPT));
                }
            }
        }

        private void finish(TierRead.Outcome outcome) {
            inFlight--;
            counts.merge(outcome, 1L, Long::sum);
            sink.onRead(tag, outcome);
        }
    }
}
