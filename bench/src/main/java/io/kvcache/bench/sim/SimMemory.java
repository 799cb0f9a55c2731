package io.kvcache.bench.sim;

import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/// Native memory that is used again by the next store, and knows how much of it is out.
///
/// Only what has to be zeroes is zeroed: slots begin with whatever the last store left there, which
/// nobody may see.
///
/// **Ownership.** Closing it ends all of it.
public final class SimMemory implements HostMemorySource, AutoCloseable {

    private static final int ALIGNMENT = 4096;
    private static final String SLOTS = "slots";

    /// Memory that stands for a disk.
    static final String DISK = "disk";

    private final Arena arena = Arena.ofShared();
    private final Map<Long, Deque<MemorySegment>> free = new HashMap<>();
    private final List<ReservedSpan> reserved = new ArrayList<>();

    @Override
    public HostMemory reserve(String purpose, long bytes) {
        MemorySegment segment =
                free.computeIfAbsent(bytes, _ -> new ArrayDeque<>()).poll();
        if (segment == null) {
            segment = arena.allocate(bytes, ALIGNMENT);
        } else if (!purpose.equals(SLOTS)) {
            segment.fill((byte) 0);
        }
        ReservedSpan span = new ReservedSpan(purpose, segment);
        reserved.add(span);
        return span;
    }

    /// Bytes that are reserved and were not given back.
    long reservedBytes() {
        return reserved.stream().mapToLong(span -> span.segment.byteSize()).sum();
    }

    /// Whoever had memory is no more; disks keep theirs.
    void releaseAllButDisks() {
        releaseSpan(false);
    }

    /// The run is over.
    void releaseAll() {
        releaseSpan(true);
    }

    private void releaseSpan(boolean disks) {
        List.copyOf(reserved).stream()
                .filter(span -> disks || !span.purpose.equals(DISK))
                .forEach(ReservedSpan::close);
    }

    @Override
    public void close() {
        arena.close();
    }

    private final class ReservedSpan implements HostMemory {
        private final String purpose;
        private final MemorySegment segment;

        ReservedSpan(String purpose, MemorySegment segment) {
            this.purpose = purpose;
            this.segment = segment;
        }

        @Override
        public MemorySegment segment() {
            return segment;
        }

        @Override
        public String describe() {
            return "simulated";
        }

        @Override
        public void close() {
            if (!reserved.remove(this)) {
                throw new IllegalStateException("memory is given back twice");
            }
            free.computeIfAbsent(segment.byteSize(), _ -> new ArrayDeque<>()).push(segment);
        }
    }

    /// Fills slots that were given back with bytes that nobody wrote, so that whoever still uses them is
    /// noticed: a reader by what it reads, a disk by the checksum of what it writes.
    ///
    /// What is given back is found by looking at all records again, which costs the store nothing. A slot
    /// that has a new owner by then is left alone.
    static final class SlotPoisoner {

        private static final byte POISON = (byte) 0xDD;

        private final HostStore store;
        private TreeMap<Long, MemorySegment> held = new TreeMap<>();

        SlotPoisoner(HostStore store) {
            this.store = store;
        }

        void poisonFreeSlots() {
            TreeMap<Long, MemorySegment> now = new TreeMap<>();
            RecordPool records = store.records();
            for (int record = 0; record < records.highWaterMark(); record++) {
                if (ControlWord.state(records.control(record)) != ControlWord.FREE
                        && records.hostPage(record) != SlabPool.NONE) {
                    store.segments(record).forEach(piece -> now.put(piece.address(), piece));
                }
            }
            held.forEach((address, piece) -> {
                if (!overlaps(now, address, piece.byteSize())) {
                    piece.fill(POISON);
                }
            });
            held = now;
        }

        private static boolean overlaps(NavigableMap<Long, MemorySegment> taken, long address, long bytes) {
            Map.Entry<Long, MemorySegment> before = taken.lowerEntry(address + bytes);
            return before != null && before.getKey() + before.getValue().byteSize() > address;
        }
    }
}
