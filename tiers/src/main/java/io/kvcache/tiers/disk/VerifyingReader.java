package io.kvcache.tiers.disk;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.codec.StoredRange;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier.RangeTier.TierRange;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

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
    private final TierListener listener;
    private final int limit;
    private final ComputePool computePool;
    private final BlockEncoder.CodingCounters counters;
    private final StagingRing ring;
    private final ProvedHeads heads = new ProvedHeads();
    private final Map<TierRead.Outcome, Long> counts = new EnumMap<>(TierRead.Outcome.class);
    private int inFlight;
    private long stale;

    VerifyingReader(
            LogIo io,
            RegionTable regionTable,
            TierListener listener,
            int limit,
            ComputePool computePool,
            BlockEncoder.CodingCounters counters,
            StagingRing ring) {
        this.io = io;
        this.regionTable = regionTable;
        this.listener = listener;
        this.limit = limit;
        this.computePool = computePool;
        this.counters = counters;
        this.ring = ring;
    }

    SubmitResult read(long address, BufferList target, int checksum, long tag) {
        SubmitResult refusal = refusal(address);
        if (refusal != null) {
            return refusal;
        }
        if (inFlight >= limit) {
            return SubmitResult.RETRY;
        }
        Region region = regionTable.regionAt(address);
        new PendingRead(region, StoredLayout.ofAddress(address), target, checksum, tag).start(offset(region, address));
        return SubmitResult.ACCEPTED;
    }

    /// As [io.kvcache.core.tier.Tier.RangeTier#readRange].
    SubmitResult readRange(TierRange range) {
        SubmitResult refusal = refusal(range.address());
        if (refusal != null) {
            return refusal;
        }
        StoredLayout layout = StoredLayout.ofAddress(range.address());
        if (layout.headPages() == 0) {
            return SubmitResult.REJECTED;
        }
        int to = range.from() + Math.toIntExact(range.target().byteSize());
        StoredRange stored = new StoredRange(layout, range.block().bytes(), range.from(), to);
        MemorySegment head = heads.find(range.address(), range.block().checksum());
        MemorySegment body = stored.bodyIn(range.target());
        long headBytes = head == null ? (long) layout.headPages() * DiskGeometry.PAGE_BYTES : 0;
        long bytes = headBytes + (body == null ? (long) stored.pages() * DiskGeometry.PAGE_BYTES : 0);
        if (!ring.takes(bytes * MIN_RANGES_AT_ONCE)) {
            return SubmitResult.REJECTED;
        }
        StagingRing.Span span = bytes > 0 && inFlight < limit ? ring.allocate(bytes) : null;
        if (inFlight >= limit || (bytes > 0 && span == null)) {
            return SubmitResult.RETRY;
        }
        Region region = regionTable.regionAt(range.address());
        RangeMemory memory = new RangeMemory(
                span,
                head != null,
                head == null ? Objects.requireNonNull(span).memory().asSlice(0, headBytes) : head,
                body == null ? Objects.requireNonNull(span).memory().asSlice(headBytes) : body);
        new PendingRange(region, range, stored, memory).start(offset(region, range.address()));
        return SubmitResult.ACCEPTED;
    }

    /// Where a range and the head of its block are read to.
    ///
    /// @param span of the ring, for what is read to there; null when there is nothing
    /// @param isHeadProved whether the head was read before, and proved
    private record RangeMemory(
            StagingRing.@Nullable Span span, boolean isHeadProved, MemorySegment head, MemorySegment body) {

        boolean isOnePiece() {
            return span != null && span.memory().byteSize() == head.byteSize() + body.byteSize();
        }
    }

    /// Returns why nothing can be read at an address, or null when it can.
    private @Nullable SubmitResult refusal(long address) {
        if (!io.canRead()) {
            return SubmitResult.REJECTED;
        }
        if (!regionTable.regionAt(address).isCurrent(address)) {
            stale++;
            return SubmitResult.GONE;
        }
        return null;
    }

    private long offset(Region region, long address) {
        return regionTable.offset(region, LogAddress.page(address));
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

    /// A read on its way: what is loaded, then what is computed of it, then the outcome.
    private abstract class PendingLoad implements ComputePool.Computation {
        private final Region region;
        private final long tag;
        private int left;
        private boolean failed;
        private boolean matches;

        PendingLoad(Region region, long tag) {
            this.region = region;
            this.tag = tag;
        }

        /// Begins the given number of loads, which come next and end with [#onComplete].
        final void begin(int loads) {
            inFlight++;
            region.startReading();
            left = loads;
        }

        final void onComplete(IoOutcome outcome) {
            failed |= !outcome.isDone();
            left--;
            if (left == 0) {
                region.endReading();
                if (failed) {
                    end(TierRead.Outcome.UNREADABLE);
                } else {
                    computePool.submit(computedBytes(), this);
                }
            }
        }

        abstract int computedBytes();

        /// Puts the bytes in order, on any thread, and returns whether they are the block's.
        abstract boolean prove();

        @Override
        public final void compute() {
            matches = prove();
        }

        @Override
        public void finish() {
            end(matches ? TierRead.Outcome.SUCCESS : TierRead.Outcome.CORRUPT);
        }

        void end(TierRead.Outcome outcome) {
            inFlight--;
            counts.merge(outcome, 1L, Long::sum);
            listener.onRead(tag, outcome);
        }
    }

    private final class PendingRead extends PendingLoad {
        private final StoredLayout layout;
        private final BufferList target;
        private final int checksum;
        private long nanos;

        PendingRead(Region region, StoredLayout layout, BufferList target, int checksum, long tag) {
            super(region, tag);
            this.layout = layout;
            this.target = target;
            this.checksum = checksum;
        }

        /// @param offset of the block on the device
        void start(long offset) {
            // Of what is not coded, the head is left out.
            int skipped = layout.isCoded() ? 0 : layout.headPages();
            List<MemorySegment> spans = target.lastPages(layout.pages(target.bytes()) - skipped);
            begin(spans.size());
            long at = offset + (long) skipped * DiskGeometry.PAGE_BYTES;
            for (MemorySegment span : spans) {
                io.load(span, at, this::onComplete);
                at += span.byteSize();
            }
        }

        @Override
        int computedBytes() {
            return target.bytes();
        }

        @Override
        boolean prove() {
            if (!layout.isCoded()) {
                return target.checksum() == checksum;
            }
            long began = computePool.nanos();
            boolean good = BlockEncoder.codec().decode(layout, target.spans(), target.bytes(), checksum);
            nanos = computePool.nanos() - began;
            return good;
        }

        @Override
        public void finish() {
            if (layout.isCoded()) {
                counters.onDecoded(target.bytes(), nanos);
            }
            super.finish();
        }
    }

    private final class PendingRange extends PendingLoad {
        private final TierRange range;
        private final StoredRange stored;
        private final RangeMemory memory;

        PendingRange(Region region, TierRange range, StoredRange stored, RangeMemory memory) {
            super(region, range.tag());
            this.range = range;
            this.stored = stored;
            this.memory = memory;
        }

        /// The head and the pages behind it are one read where nothing lies between them.
        ///
        /// @param offset of the block on the device
        void start(long offset) {
            long bodyOffset = offset + (long) stored.firstPage() * DiskGeometry.PAGE_BYTES;
            if (memory.isHeadProved) {
                begin(1);
                io.load(memory.body, bodyOffset, this::onComplete);
            } else if (memory.isOnePiece()
                    && stored.firstPage() == stored.layout().headPages()) {
                begin(1);
                io.load(Objects.requireNonNull(memory.span).memory(), offset, this::onComplete);
            } else {
                begin(2);
                io.load(memory.head, offset, this::onComplete);
                io.load(memory.body, bodyOffset, this::onComplete);
            }
        }

        @Override
        int computedBytes() {
            return (int) memory.body.byteSize();
        }

        @Override
        boolean prove() {
            return BlockEncoder.codec()
                    .extract(
                            stored,
                            memory.head,
                            memory.isHeadProved,
                            memory.body,
                            range.block().checksum(),
                            range.target());
        }

        @Override
        void end(TierRead.Outcome outcome) {
            if (outcome == TierRead.Outcome.SUCCESS && !memory.isHeadProved) {
                heads.add(range.address(), range.block().checksum(), memory.head);
            }
            if (memory.span != null) {
                memory.span.release();
            }
            super.end(outcome);
        }
    }

    /// Heads of blocks that were read in part a short time ago, and proved: the next part is read without them.
    private static final class ProvedHeads {

        /// Those of a thousand blocks of a few MiB.
        private static final long MAX_BYTES = 4 << 20;

        private final Map<Long, Head> byAddress = new LinkedHashMap<>(16, 0.75f, true);
        private long bytes;

        private record Head(int checksum, MemorySegment memory) {}

        /// @param checksum of the block that is expected there
        @Nullable
        MemorySegment find(long address, int checksum) {
            Head head = byAddress.get(address);
            return head == null || head.checksum != checksum ? null : head.memory;
        }

        void add(long address, int checksum, MemorySegment proved) {
            MemorySegment copy = Arena.ofAuto().allocate(proved.byteSize(), Long.BYTES);
            copy.copyFrom(proved);
            Head before = byAddress.put(address, new Head(checksum, copy));
            bytes += copy.byteSize() - (before == null ? 0 : before.memory.byteSize());
            Iterator<Head> eldest = byAddress.values().iterator();
            while (bytes > MAX_BYTES) {
                bytes -= eldest.next().memory.byteSize();
                eldest.remove();
            }
        }
    }
}
