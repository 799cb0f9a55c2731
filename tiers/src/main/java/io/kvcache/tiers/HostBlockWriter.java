package io.kvcache.tiers;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.store.HostStore;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Writes one block into its slot.
final class HostBlockWriter implements BlockWriter {

    private final Filling filling;
    private final int blockBytes;
    private boolean summed;

    HostBlockWriter(Filling filling, int blockBytes) {
        this.filling = filling;
        this.blockBytes = blockBytes;
    }

    @Override
    public PutOutcome outcome() {
        return filling.outcome();
    }

    @Override
    public MemorySegment segment() {
        filling.requireOpen();
        return filling.limit(slot());
    }

    @Override
    public void copyFrom(MemorySegment source) {
        filling.requireOpen();
        if (source.byteSize() != blockBytes) {
            throw new IllegalArgumentException(
                    "the source has " + source.byteSize() + " bytes; a block of this namespace has " + blockBytes);
        }
        filling.copy(source, List.of(slot()));
        summed = true;
    }

    @Override
    public SealOutcome seal() {
        filling.requireOpen();
        if (!summed) {
            filling.sum(slot());
        }
        return filling.seal();
    }

    @Override
    public SealOutcome seal(int checksum) {
        return filling.seal(checksum);
    }

    @Override
    public void close() {
        filling.close();
    }

    private MemorySegment slot() {
        HostStore store = filling.store();
        return store.slotSegment(store.records().hostPage(filling.record()), blockBytes);
    }
}
