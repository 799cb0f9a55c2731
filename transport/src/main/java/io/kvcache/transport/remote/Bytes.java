package io.kvcache.transport.remote;

import io.kvcache.core.store.ChunkedCrc;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// Bytes of a caller where they can be sent from: where they lie when that is native memory, else in a slot
/// that they are copied to.
///
/// @param slot null when none is needed
record Bytes(MemorySegment segment, ArrivalMemory.@Nullable Slot slot) implements AutoCloseable {

    /// For bytes like these, or null when there is no memory for a copy.
    static @Nullable Bytes of(MemorySegment source, Wiring wiring) {
        if (source.isNative()) {
            return new Bytes(source, null);
        }
        ArrivalMemory.Slot slot = wiring.memory().take(source.byteSize());
        if (slot == null) {
            wiring.counters().noMemory.increment();
            return null;
        }
        return new Bytes(slot.segment(source.byteSize()), slot);
    }

    /// Brings them there, and sums them.
    ChunkedCrc summed(MemorySegment source) {
        ChunkedCrc crc = new ChunkedCrc();
        if (slot == null) {
            crc.update(source);
        } else {
            crc.copy(source, 0, segment);
        }
        return crc;
    }

    @Override
    public void close() {
        if (slot != null) {
            slot.free();
        }
    }
}
