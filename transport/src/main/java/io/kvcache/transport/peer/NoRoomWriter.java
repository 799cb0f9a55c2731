package io.kvcache.transport.peer;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// The writer of a put for which no server could be reached.
final class NoRoomWriter implements BlockWriter, ObjectWriter {

    @Override
    public PutOutcome outcome() {
        return PutOutcome.NO_ROOM;
    }

    @Override
    public MemorySegment segment() {
        throw nothingReserved();
    }

    @Override
    public void copyFrom(MemorySegment source) {
        throw nothingReserved();
    }

    @Override
    public List<MemorySegment> segments() {
        throw nothingReserved();
    }

    @Override
    public void advance(long bytes) {
        throw nothingReserved();
    }

    @Override
    public SealOutcome seal() {
        throw nothingReserved();
    }

    @Override
    public SealOutcome seal(int checksum) {
        throw nothingReserved();
    }

    private static IllegalStateException nothingReserved() {
        return new IllegalStateException("nothing is reserved: the outcome was " + PutOutcome.NO_ROOM);
    }

    @Override
    public void close() {
        // Nothing was reserved.
    }
}
