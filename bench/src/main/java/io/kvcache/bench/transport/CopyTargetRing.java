package io.kvcache.bench.transport;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Where one thread's copies go, in turn: more than the caches of a processor hold. Lent for one copy at a
/// time, so that threads that come and go do not each make one.
final class CopyTargetRing {

    private static final long BUFFER_BYTES = 64L << 20;
    private static final Queue<CopyTargetRing> IDLE = new ConcurrentLinkedQueue<>();

    private final MemorySegment memory = Arena.ofAuto().allocate(BUFFER_BYTES, 4096);
    private long next;

    /// Lends one.
    static CopyTargetRing borrow() {
        CopyTargetRing idle = IDLE.poll();
        return idle == null ? new CopyTargetRing() : idle;
    }

    /// Gives it back.
    void giveBack() {
        IDLE.add(this);
    }

    /// The next piece of it.
    MemorySegment nextSlice(int bytes) {
        next = next + bytes > BUFFER_BYTES ? 0 : next;
        MemorySegment piece = memory.asSlice(next, bytes);
        next += bytes;
        return piece;
    }
}
