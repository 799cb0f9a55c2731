package io.kvcache.tiers.disk;

import io.kvcache.core.codec.BlockCodec;
import io.kvcache.core.codec.BlockCodec.CodedBlock;
import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.tier.TierStats;
import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/// Codes blocks on their way to the writer, which gets them in the order in which they were appended. What stays plain
/// gets sums of its pages, if it is large.
///
/// Coded bytes and sums lie in a [StagingRing] until they are written. A block that finds no room there waits, and one
/// for which there is never room is written as it is.
///
/// **Threads.** The log's, but for [#codec].
final class BlockEncoder {

    private static final ThreadLocal<BlockCodec> CODECS = ThreadLocal.withInitial(BlockCodec::new);

    private final StagingRing ring;
    private final BatchWriter writer;
    private final ComputePool computePool;
    private final CodingCounters counters;
    private final long maxEntryBytes;

    /// @param maxEntryBytes as they lie on the device
    BlockEncoder(
            StagingRing ring,
            BatchWriter writer,
            ComputePool computePool,
            CodingCounters counters,
            long maxEntryBytes) {
        this.ring = ring;
        this.writer = writer;
        this.computePool = computePool;
        this.counters = counters;
        this.maxEntryBytes = maxEntryBytes;
    }

    /// A codec for the thread that asks.
    static BlockCodec codec() {
        return CODECS.get();
    }

    /// Returns the memory that a block takes on its way; 0 when it is to be written as it is.
    ///
    /// @param coded whether coding is tried
    long stagingBytes(DiskEntry entry, boolean coded) {
        long sums = (long) sumPages(entry) * DiskGeometry.PAGE_BYTES;
        long needed = coded ? Math.max(sums, BlockCodec.encodeBytes(entry.bytes())) : sums;
        return ring.takes(needed) ? needed : 0;
    }

    /// Pages of the sums that a block has when it stays plain; 0 when it has none, or no room for them.
    private int sumPages(DiskEntry entry) {
        int pages = BlockCodec.plainHeadPages(entry.bytes());
        return (long) (pages + entry.pages()) * DiskGeometry.PAGE_BYTES <= maxEntryBytes ? pages : 0;
    }

    /// Appends a block, coded if that makes it smaller.
    ///
    /// @param stagingBytes of it
    /// @param coded whether coding is tried
    /// @param completion hears its address, or [LogAddress#NONE]
    /// @return false when it has to wait for others to be written
    boolean append(DiskEntry entry, BufferList plain, long stagingBytes, boolean coded, LongConsumer completion) {
        StagingRing.Span span = ring.allocate(stagingBytes);
        if (span == null) {
            return false;
        }
        BatchWriter.PendingAppend append = writer.appendLater(entry, plain, address -> {
            span.release();
            completion.accept(address);
        });
        computePool.submit(entry.bytes(), new Encoding(append, plain, span.memory(), coded));
        return true;
    }

    private final class Encoding implements ComputePool.Computation {
        private final BatchWriter.PendingAppend append;
        private final BufferList plain;
        private final MemorySegment into;
        private final boolean isCoded;
        private final int headPages;
        private @Nullable CodedBlock coded;
        private boolean isSummed;
        private long nanos;

        Encoding(BatchWriter.PendingAppend append, BufferList plain, MemorySegment into, boolean isCoded) {
            this.append = append;
            this.plain = plain;
            this.into = into;
            this.isCoded = isCoded;
            headPages = sumPages(append.entry());
        }

        @Override
        public void compute() {
            long began = computePool.nanos();
            coded = isCoded ? codec().encode(plain.spans(), plain.bytes(), into) : null;
            nanos = computePool.nanos() - began;
            if (coded == null && headPages > 0) {
                BlockCodec.sumPages(plain.spans(), plain.bytes(), head());
                isSummed = true;
            }
        }

        private MemorySegment head() {
            return into.asSlice(0, (long) headPages * DiskGeometry.PAGE_BYTES);
        }

        @Override
        public void finish() {
            CodedBlock block = coded;
            if (isCoded) {
                counters.onEncoded(
                        plain.bytes(), block == null ? 0 : block.bytes().byteSize(), nanos);
            }
            if (block != null) {
                DiskEntry entry = append.entry().withLayout(block.layout());
                append.setReady(entry, BufferList.stored(block.bytes(), entry));
            } else if (isSummed) {
                DiskEntry entry = append.entry().withLayout(new StoredLayout(StoredLayout.PLAIN_CODEC, headPages));
                append.setReady(entry, plain.behind(head()));
            } else {
                append.setReady(append.entry(), plain);
            }
        }
    }

    /// Counts what was coded and decoded. The log's thread.
    static final class CodingCounters {
        private long blocks;
        private long plainBytes;
        private long storedBytes;
        private long leftPlain;
        private long encodedBytes;
        private long encodeNanos;
        private long decodedBytes;
        private long decodeNanos;

        private void onEncoded(int bytes, long stored, long nanos) {
            encodedBytes += bytes;
            encodeNanos += nanos;
            if (stored == 0) {
                leftPlain++;
            } else {
                blocks++;
                plainBytes += bytes;
                storedBytes += stored;
            }
        }

        void onDecoded(int bytes, long nanos) {
            decodedBytes += bytes;
            decodeNanos += nanos;
        }

        TierStats.Coding stats() {
            return new TierStats.Coding(
                    blocks, plainBytes, storedBytes, leftPlain, encodedBytes, encodeNanos, decodedBytes, decodeNanos);
        }
    }
}
