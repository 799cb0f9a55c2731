package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Memory of a log for bytes on their way to or from the device in another form than the store has them: each user
/// takes the next span of a ring.
///
/// **Threads.** The log's.
final class StagingRing {

    private final MemorySegment memory;
    private final Deque<Span> spans = new ArrayDeque<>();

    /// @param memory whole pages; none when nothing is to be staged
    StagingRing(MemorySegment memory) {
        this.memory = memory;
    }

    /// A part of the ring, until it is released.
    final class Span {
        private final long from;
        private final long to;
        private boolean free;

        private Span(long from, long to) {
            this.from = from;
            this.to = to;
        }

        MemorySegment memory() {
            return memory.asSlice(from, to - from);
        }

        void release() {
            free = true;
            for (Span oldest = spans.peekFirst(); oldest != null && oldest.free; oldest = spans.peekFirst()) {
                spans.removeFirst();
            }
        }
    }

    /// Returns whether the ring is large enough for this size at all.
    boolean takes(long bytes) {
        return bytes <= memory.byteSize();
    }

    /// Takes the next part.
    ///
    /// @param bytes whole pages
    /// @return null while others have the room
    @Nullable
    Span allocate(long bytes) {
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
}
