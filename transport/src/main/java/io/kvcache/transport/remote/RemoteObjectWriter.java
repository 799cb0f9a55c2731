package io.kvcache.transport.remote;

import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Collects one object here, in one piece, and sends it when it is sealed.
record RemoteObjectWriter(Outgoing outgoing) implements ObjectWriter {

    @Override
    public PutOutcome outcome() {
        return outgoing.outcome();
    }

    @Override
    public List<MemorySegment> pieces() {
        return List.of(outgoing.segment());
    }

    @Override
    public void copyFrom(MemorySegment source) {
        outgoing.copyFrom(source, "the room");
    }

    @Override
    public void arrived(long bytes) {
        outgoing.arrived(bytes);
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
