package io.kvcache.transport.remote;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Memory for blocks and objects that arrive or are about to leave: slots of whole pages, kept for the
/// next of their size, within a bound. Slots in use and kept count together; those kept of other sizes
/// make room.
///
/// **Threads.** Any.
final class ArrivalMemory {

    private static final long PAGE = 4096;

    private final long mostBytes;
    private final Map<Long, Deque<Slot>> kept = new HashMap<>();
    private long keptBytes;
    private long usedBytes;
    private boolean closed;

    ArrivalMemory(long mostBytes) {
        this.mostBytes = mostBytes;
    }

    /// Native memory that somebody owns, page-aligned; its contents are undefined.
    final class Slot implements Place {

        private final Arena arena = Arena.ofShared();
        private final MemorySegment whole;
        private boolean used = true;
        private @Nullable ByteBuffer view;

        private Slot(long bytes) {
            whole = arena.allocate(bytes, PAGE);
        }

        /// The first bytes of it.
        @Override
        public MemorySegment segment(long bytes) {
            return whole.asSlice(0, bytes);
        }

        /// The first bytes of it, as the same buffer as long as as many are asked for.
        ByteBuffer buffer(long bytes) {
            ByteBuffer kept = view;
            if (kept == null || kept.capacity() != bytes) {
                kept = segment(bytes).asByteBuffer();
                view = kept;
            }
            return kept;
        }

        /// Gives it back; nobody may touch it afterwards.
        @Override
        public void free() {
            ArrivalMemory.this.free(this);
        }
    }

    /// A slot, or null when there is no room.
    @Nullable
    synchronized Slot take(long bytes) {
        long size = rounded(bytes);
        Deque<Slot> same = kept.get(size);
        Slot slot = same == null ? null : same.pollFirst();
        if (slot != null) {
            keptBytes -= size;
            slot.used = true;
        } else if (makeRoom(size)) {
            slot = new Slot(size);
        } else {
            return null;
        }
        usedBytes += size;
        return slot;
    }

    /// Slots of this size that can be had now.
    synchronized long available(long bytes) {
        return (mostBytes - usedBytes) / rounded(bytes);
    }

    private static long rounded(long bytes) {
        return (bytes + PAGE - 1) / PAGE * PAGE;
    }

    private boolean makeRoom(long size) {
        if (usedBytes + size > mostBytes) {
            return false;
        }
        Iterator<Deque<Slot>> all = kept.values().iterator();
        while (usedBytes + keptBytes + size > mostBytes && all.hasNext()) {
            Deque<Slot> slots = all.next();
            while (usedBytes + keptBytes + size > mostBytes && !slots.isEmpty()) {
                discard(slots.removeLast());
            }
            if (slots.isEmpty()) {
                all.remove();
            }
        }
        return true;
    }

    private void discard(Slot slot) {
        keptBytes -= slot.whole.byteSize();
        slot.arena.close();
    }

    private synchronized void free(Slot slot) {
        if (!slot.used) {
            throw new IllegalStateException("a slot is given back twice");
        }
        slot.used = false;
        long size = slot.whole.byteSize();
        usedBytes -= size;
        if (closed) {
            slot.arena.close();
        } else {
            keptBytes += size;
            kept.computeIfAbsent(size, none -> new ArrayDeque<>()).addFirst(slot);
        }
    }

    /// Bytes in slots that somebody owns.
    synchronized long usedBytes() {
        return usedBytes;
    }

    /// Frees what is kept now, and the rest as it comes back.
    synchronized void close() {
        closed = true;
        kept.values().forEach(slots -> slots.forEach(this::discard));
        kept.clear();
    }
}
