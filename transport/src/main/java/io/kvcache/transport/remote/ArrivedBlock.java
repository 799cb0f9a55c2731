package io.kvcache.transport.remote;

import java.lang.foreign.MemorySegment;

/// A block in memory of this process.
record ArrivedBlock(ArrivalMemory.Slot slot, long bytes, int checksum) implements RemoteTable.Block {

    @Override
    public MemorySegment segment() {
        return slot.segment(bytes);
    }

    @Override
    public boolean valid() {
        return true;
    }

    @Override
    public void free() {
        slot.free();
    }
}
