package io.kvcache.tiers.disk;

import io.kvcache.core.codec.BlockCodec;
import io.kvcache.core.codec.BlockCodec.CodedBlock;
import io.kvcache.core.tier.TierStats;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/// Codes blocks on their way to the writer, which gets them in the order in which they were appended.
///
/// Coded bytes lie in memory of the log's own until they are written: one ring, of which each block takes the next
/// span. A block that finds no room there waits, and one for which there is never room is written as it is.
///
/// **Threads.** The log's, but for [#codec].
final class BlockEncoder {

    private static final ThreadLocal<BlockCodec> CODECS = ThreadLocal.withInitial(BlockCodec::new);

    private final MemorySegment memory;
    private final BatchWriter writer;
    private final ComputePool computePool;
    private final CodingCounters counters;
    private final Deque<Span> spans = new ArrayDeque<>();

    /// @param memory whole pages; none when nothing is coded
    BlockEncoder(MemorySegment memory, BatchWriter writer, ComputePool computePool, CodingCounters counters) {
        this.memory = memory;
        this.writer = writer;
        this.computePool = computePool;
        this.counters = counters;
    }

    /// A codec for the thread that asks.
    static BlockCodec codec() {
        return CODECS.get();
    }

    /// Returns whether a block is of a size that can be coded.
    boolean takes(int bytes) {
        long needed = BlockCodec.encodeBytes(bytes);
        return needed > 0 && needed <= memory.byteSize();
    }

    /// Appends a block that [#takes] accepts, coded if that makes it smaller.
    ///
    /// @param completion hears its address, or [LogAddress#NONE]
    /// @return false when it has to wait for others to be written
    boolean append(DiskEntry entry, BufferList plain, LongConsumer completion) {
        Span span = allocate(BlockCodec.encodeBytes(entry.bytes()));
        if (span == null) {
            return false;
        }
        BatchWriter.PendingAppend append = writer.appendLater(entry, plain, address -> {
            release(span);
            completion.accept(address);
        });
        computePool.submit(entry.bytes(), new Encoding(append, plain, span));
        return true;
    }

    /// A part of the ring.
    private static final class Span {
        final long from;
        final long to;
        boolean free;

        Span(long from, long to) {
            this.from = from;
            this.to = to;
        }
    }

    private @Nullable Span allocate(long bytes) {
        Span oldest = spans.peekFirst();
        Span newest = spans.peekLast();
        long from = 0;
        if (oldest != null && newest != null) {
            boolean wrapped = newest.from < oldest.from;
            from = newest.to;
            if (!wrapped && from + bytes > memory.byteSize()) {
                from = 0;
                wrapped = true;
            }
            if (wrapped && from + bytes > oldest.from) {
                return null;
            }
        }
        Span span = new Span(from, from + bytes);
        spans.addLast(span);
        return span;
    }

    private void release(Span span) {
        span.free = true;
        for (Span oldest = spans.peekFirst(); oldest != null && oldest.free; oldest = spans.peekFirst()) {
            spans.removeFirst();
        }
    }

    private final class Encoding implements ComputePool.Computation {
        private final BatchWriter.PendingAppend append;
        private final BufferList plain;
        private final MemorySegment into;
        private @Nullable CodedBlock coded;
        private long nanos;

        Encoding(BatchWriter.PendingAppend append, BufferList plain, Span span) {
            this.append = append;
            this.plain = plain;
            into = memory.asSlice(span.from, span.to - span.from);
        }

        @Override
        public void compute() {
            long began = computePool.nanos();
            coded = codec().encode(plain.spans(), plain.bytes(), into);
            nanos = computePool.nanos() - began;
        }

        @Override
        public void finish() {
            CodedBlock block = coded;
            counters.onEncoded(plain.bytes(), block == null ? 0 : block.bytes().byteSize(), nanos);
            if (block == null) {
                append.setReady(append.entry(), plain);
            } else {
                DiskEntry entry = append.entry().withLayout(block.layout());
                append.setReady(entry, BufferList.stored(block.bytes(), entry));
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
