package io.kvcache.transport.client;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// A pool of memory for blocks and objects that arrive or are about to be sent.
///
/// Slots have whole pages. The pool keeps a freed slot for the next request of its size. The limit covers slots in
/// use and idle ones together, and the pool frees idle slots of other sizes to make room.
///
/// **Threads.** Any.
final class ReceiveBuffers {

    private static final long PAGE_BYTES = 4096;

    private final long maxBytes;
    private final Map<Long, Deque<PooledBuffer>> idle = new HashMap<>();
    private long idleBytes;
    private long usedBytes;
    private boolean closed;

    ReceiveBuffers(long maxBytes) {
        this.maxBytes = maxBytes;
    }

    /// Native memory with one owner, page-aligned; its contents are undefined.
    final class PooledBuffer implements PutBuffer {

        private final Arena arena = Arena.ofShared();
        private final MemorySegment memory;
        private boolean used = true;
        private @Nullable ByteBuffer view;

        private PooledBuffer(long bytes) {
            memory = arena.allocate(bytes, PAGE_BYTES);
        }

        /// The first bytes of it.
        @Override
        public MemorySegment segment(long bytes) {
            return memory.asSlice(0, bytes);
        }

        /// Returns the first bytes of it: the same buffer as long as callers ask for the same size.
        ByteBuffer buffer(long bytes) {
            ByteBuffer kept = view;
            if (kept == null || kept.capacity() != bytes) {
                kept = segment(bytes).asByteBuffer();
                view = kept;
            }
            return kept;
        }

        /// Returns the slot to the pool. The caller must not touch it afterwards.
        @Override
        public void free() {
            ReceiveBuffers.this.free(this);
        }
    }

    /// Returns a slot, or null when the slots in use leave too few bytes.
    @Nullable
    synchronized PooledBuffer allocate(long bytes) {
        long size = roundToPages(bytes);
        Deque<PooledBuffer> same = idle.get(size);
        PooledBuffer buffer = same == null ? null : same.pollFirst();
        if (buffer != null) {
            idleBytes -= size;
            buffer.used = true;
        } else if (makeRoom(size)) {
            buffer = new PooledBuffer(size);
        } else {
            return null;
        }
        usedBytes += size;
        return buffer;
    }

    /// Returns how many slots of this size the pool can still lend.
    synchronized long availableBuffers(long bytes) {
        return (maxBytes - usedBytes) / roundToPages(bytes);
    }

    private static long roundToPages(long bytes) {
        return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    }

    private boolean makeRoom(long size) {
        if (usedBytes + size > maxBytes) {
            return false;
        }
        Iterator<Deque<PooledBuffer>> all = idle.values().iterator();
        while (usedBytes + idleBytes + size > maxBytes && all.hasNext()) {
            Deque<PooledBuffer> slots = all.next();
            while (usedBytes + idleBytes + size > maxBytes && !slots.isEmpty()) {
                discard(slots.removeLast());
            }
            if (slots.isEmpty()) {
                all.remove();
            }
        }
        return true;
    }

    private void discard(PooledBuffer buffer) {
        idleBytes -= buffer.memory.byteSize();
        buffer.arena.close();
    }

    private synchronized void free(PooledBuffer buffer) {
        if (!buffer.used) {
            throw new IllegalStateException("a slot is given back twice");
        }
        buffer.used = false;
        long size = buffer.memory.byteSize();
        usedBytes -= size;
        if (closed) {
            buffer.arena.close();
        } else {
            idleBytes += size;
            idle.computeIfAbsent(size, none -> new ArrayDeque<>()).addFirst(buffer);
        }
    }

    /// Returns the bytes in slots that have an owner.
    synchronized long usedBytes() {
        return usedBytes;
    }

    /// Frees the idle slots now, and each slot in use when its owner returns it.
    synchronized void close() {
        closed = true;
        idle.values().forEach(slots -> slots.forEach(this::discard));
        idle.clear();
    }
}
