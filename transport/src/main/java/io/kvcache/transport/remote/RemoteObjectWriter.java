package io.kvcache.transport.remote;

import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Collects one object here, in one piece, and sends it when it is sealed.
record RemoteObjectWriter(RemoteSlotWriter remoteSlotWriter) implements ObjectWriter {

    @Override
    public PutOutcome outcome() {
        return remoteSlotWriter.outcome();
    }

    @Override
    public List<MemorySegment> segments() {
        return List.of(remoteSlotWriter.segment());
    }

    @Override
    public void copyFrom(MemorySegment source) {
        remoteSlotWriter.copyFrom(source, "the room");
    }

    @Override
    public void advance(long bytes) {
        remoteSlotWriter.onBytesWritten(bytes);
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
