package io.kvcache.tiers.disk;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/// Reads blocks, decodes those that are coded, and lets nothing through that has not the block's checksum.
///
/// A coded block is read into the end of the memory that it fills when it is decoded, see [BlockCodec].
///
/// A region is not overwritten while a read from it is under way; so what a read meets is what lay there when it
/// was taken.
final class VerifyingReader {

    private final LogIo io;
    private final RegionTable regionTable;
    private final TierListener store;
    private final int limit;
    private final ComputePool computePool;
    private final BlockEncoder.CodingCounters counters;
    private final Map<TierRead.Outcome, Long> counts = new EnumMap<>(TierRead.Outcome.class);
    private int inFlight;
    private long stale;

    VerifyingReader(
            LogIo io,
            RegionTable regionTable,
            TierListener store,
            int limit,
            ComputePool computePool,
            BlockEncoder.CodingCounters counters) {
        this.io = io;
        this.regionTable = regionTable;
        this.store = store;
        this.limit = limit;
        this.computePool = computePool;
        this.counters = counters;
    }

    SubmitResult read(long address, BufferList target, int checksum, long tag) {
        if (!io.canRead()) {
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
        new PendingRead(region, StoredLayout.ofAddress(address), target, checksum, tag).start(address);
        return SubmitResult.ACCEPTED;
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

    private final class PendingRead implements ComputePool.Computation {
        private final Region region;
        private final StoredLayout layout;
        private final BufferList target;
        private final int checksum;
        private final long tag;
        private int left;
        private boolean failed;
        private boolean matches;
        private long nanos;

        PendingRead(Region region, StoredLayout layout, BufferList target, int checksum, long tag) {
            this.region = region;
            this.layout = layout;
            this.target = target;
            this.checksum = checksum;
            this.tag = tag;
        }

        void start(long address) {
            region.startReading();
            // Of what is not coded, the head is left out.
            int skipped = layout.isCoded() ? 0 : layout.headPages();
            List<MemorySegment> spans = target.lastPages(layout.pages(target.bytes()) - skipped);
            left = spans.size();
            long offset = regionTable.offset(region, LogAddress.page(address) + skipped);
            for (MemorySegment span : spans) {
                io.load(span, offset, this::onComplete);
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
                    computePool.submit(target.bytes(), this);
                }
            }
        }

        @Override
        public void compute() {
            if (layout.isCoded()) {
                long began = computePool.nanos();
                matches = BlockEncoder.codec().decode(layout, target.spans(), target.bytes(), checksum);
                nanos = computePool.nanos() - began;
            } else {
                matches = target.checksum() == checksum;
            }
        }

        @Override
        public void finish() {
            if (layout.isCoded()) {
                counters.onDecoded(target.bytes(), nanos);
            }
            finish(matches ? TierRead.Outcome.SUCCESS : TierRead.Outcome.CORRUPT);
        }

        private void finish(TierRead.Outcome outcome) {
            inFlight--;
            counts.merge(outcome, 1L, Long::sum);
            store.onRead(tag, outcome);
        }
    }
}
