package io.kvcache.transport.remote;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;

/// Collects one block here and sends it when it is sealed.
record RemoteBlockWriter(RemoteSlotWriter remoteSlotWriter) implements BlockWriter {

    @Override
    public PutOutcome outcome() {
        return remoteSlotWriter.outcome();
    }

    @Override
    public MemorySegment segment() {
        return remoteSlotWriter.segment();
    }

    @Override
    public void copyFrom(MemorySegment source) {
        remoteSlotWriter.copyFrom(source, "a block of this namespace");
    }

    @Override
    public SealOutcome seal() {
        return remoteSlotWriter.seal();
    }

    @Override
    public SealOutcome seal(int checksum) {
        return remoteSlotWriter.seal(checksum);
    }

    @Override
    public void close() {
        remoteSlotWriter.close();
    }
}
