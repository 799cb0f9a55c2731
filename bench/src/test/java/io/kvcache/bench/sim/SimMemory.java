package io.kvcache.bench.sim;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.spi.HostMemorySource;
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

/// Native memory that the next store uses again, with a count of the reserved bytes.
///
/// It clears only the memory that must be zero. Slots start with the bytes of the last store, and no
/// reader may see these.
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

    /// Returns the bytes that are reserved and not released.
    long reservedBytes() {
        return reserved.stream().mapToLong(span -> span.segment.byteSize()).sum();
    }

    /// Releases the memory of a store that has crashed. The memory that stands for disks stays.
    void releaseAllButDisks() {
        releaseSpan(false);
    }

    /// Releases all memory at the end of a run.
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

    /// Fills released slots with a poison byte, to detect a use after release: a reader sees wrong bytes, a
    /// disk write fails its checksum.
    ///
    /// It finds released slots by a scan over all records, so the store needs no hook for it. It leaves alone a
    /// slot that has a new owner by then.
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
