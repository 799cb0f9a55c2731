package io.kvcache.bench.sim;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/// Fills slots that were given back with bytes that nobody wrote, so that whoever still uses them is
/// noticed: a reader by what it reads, a disk by the checksum of what it writes.
///
/// What is given back is found by looking at all records again, which costs the store nothing. A slot
/// that has a new owner by then is left alone.
final class SlotPoisoner {

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
