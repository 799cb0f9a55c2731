package io.kvcache.tiers.disk;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.codec.StoredRange;
import io.kvcache.core.tier.RangeTier.TierRange;
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

    /// A range that takes more of the ring is not read alone: others, and writes, need room too.
    private static final int MIN_RANGES_AT_ONCE = 4;

    private final LogIo io;
    private final RegionTable regionTable;
    private final TierListener store;
    private final int limit;
    private final ComputePool computePool;
    private final BlockEncoder.CodingCounters counters;
    private final StagingRing ring;
    private final Map<TierRead.Outcome, Long> counts = new EnumMap<>(TierRead.Outcome.class);
    private int inFlight;
    private long stale;

    VerifyingReader(
            LogIo io,
            RegionTable regionTable,
            TierListener store,
            int limit,
            ComputePool computePool,
            BlockEncoder.CodingCounters counters,
            StagingRing ring) {
        this.io = io;
        this.regionTable = regionTable;
        this.store = store;
        this.limit = limit;
        this.computePool = computePool;
        this.counters = counters;
        this.ring = ring;
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

    /// As [io.kvcache.core.tier.RangeTier#readRange].
    SubmitResult readRange(TierRange range) {
        if (!io.canRead()) {
            return SubmitResult.REJECTED;
        }
        Region region = regionTable.regionAt(range.address());
        if (!region.isCurrent(range.address())) {
            stale++;
            return SubmitResult.GONE;
        }
        StoredLayout layout = StoredLayout.ofAddress(range.address());
        if (layout.headPages() == 0) {
            return SubmitResult.REJECTED;
        }
        int to = range.from() + Math.toIntExact(range.target().byteSize());
        StoredRange stored = new StoredRange(layout, range.block().bytes(), range.from(), to);
        long bytes = (long) (layout.headPages() + stored.pages()) * DiskGeometry.PAGE_BYTES;
        if (!ring.takes(bytes * MIN_RANGES_AT_ONCE)) {
            return SubmitResult.REJECTED;
        }
        StagingRing.Span span = inFlight < limit ? ring.allocate(bytes) : null;
        if (span == null) {
            return SubmitResult.RETRY;
        }
        inFlight++;
        new PendingRange(region, range, stored, span).start();
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

    private final class PendingRange implements ComputePool.Computation {
        private final Region region;
        private final TierRange range;
        private final StoredRange stored;
        private final StagingRing.Span span;
        private final MemorySegment head;
        private final MemorySegment body;
        private int left;
        private boolean failed;
        private boolean matches;

        PendingRange(Region region, TierRange range, StoredRange stored, StagingRing.Span span) {
            this.region = region;
            this.range = range;
            this.stored = stored;
            this.span = span;
            long headBytes = (long) stored.layout().headPages() * DiskGeometry.PAGE_BYTES;
            head = span.memory().asSlice(0, headBytes);
            body = span.memory().asSlice(headBytes);
        }

        /// The head and the pages behind it are one read where nothing lies between them.
        void start() {
            region.startReading();
            int page = LogAddress.page(range.address());
            if (stored.firstPage() == stored.layout().headPages()) {
                left = 1;
                io.load(span.memory(), regionTable.offset(region, page), this::onComplete);
            } else {
                left = 2;
                io.load(head, regionTable.offset(region, page), this::onComplete);
                io.load(body, regionTable.offset(region, page + stored.firstPage()), this::onComplete);
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
                    computePool.submit((int) body.byteSize(), this);
                }
            }
        }

        @Override
        public void compute() {
            matches = stored.extract(head, body, range.block().checksum(), range.target());
        }

        @Override
        public void finish() {
            finish(matches ? TierRead.Outcome.SUCCESS : TierRead.Outcome.CORRUPT);
        }

        private void finish(TierRead.Outcome outcome) {
            inFlight--;
            span.release();
            counts.merge(outcome, 1L, Long::sum);
            store.onRead(range.tag(), outcome);
        }
    }
}
