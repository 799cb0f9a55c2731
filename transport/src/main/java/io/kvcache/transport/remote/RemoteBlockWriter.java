package io.kvcache.transport.remote;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;

/// Collects one block here and sends it when it is sealed.
record RemoteBlockWriter(Outgoing outgoing) implements BlockWriter {

    @Override
    public PutOutcome outcome() {
        return outgoing.outcome();
    }

    @Override
    public MemorySegment segment() {
        return outgoing.segment();
    }

    @Override
    public void copyFrom(MemorySegment source) {
        outgoing.copyFrom(source, "a block of this namespace");
    }

    @Override
    public SealOutcome seal() {
        return outgoing.seal();
    }

    @Override
    public SealOutcome seal(int checksum) {
        return outgoing.seal(checksum);
    }

    @Override
    public void close() {
        outgoing.close();
    }
}
