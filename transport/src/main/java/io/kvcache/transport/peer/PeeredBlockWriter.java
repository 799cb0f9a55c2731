package io.kvcache.transport.peer;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;

/// A writer of the store that tells when its block is there.
///
/// @param sealed told once
record PeeredBlockWriter(BlockWriter writer, Runnable sealed) implements BlockWriter {

    @Override
    public PutOutcome outcome() {
        return writer.outcome();
    }

    @Override
    public MemorySegment segment() {
        return writer.segment();
    }

    @Override
    public void copyFrom(MemorySegment source) {
        writer.copyFrom(source);
    }

    @Override
    public SealOutcome seal() {
        return notifyIfSealed(writer.seal());
    }

    @Override
    public SealOutcome seal(int checksum) {
        return notifyIfSealed(writer.seal(checksum));
    }

    private SealOutcome notifyIfSealed(SealOutcome outcome) {
        if (outcome == SealOutcome.SEALED) {
            sealed.run();
        }
        return outcome;
    }

    @Override
    public void close() {
        writer.close();
    }
}
