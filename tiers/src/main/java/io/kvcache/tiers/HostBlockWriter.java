package io.kvcache.tiers;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.store.HostStore;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Writes one block into its slot.
final class HostBlockWriter implements BlockWriter {

    private final SlotWriter slotWriter;
    private final int blockBytes;
    private boolean checksummed;

    HostBlockWriter(SlotWriter slotWriter, int blockBytes) {
        this.slotWriter = slotWriter;
        this.blockBytes = blockBytes;
    }

    @Override
    public PutOutcome outcome() {
        return slotWriter.outcome();
    }

    @Override
    public MemorySegment segment() {
        slotWriter.requireOpen();
        return slotWriter.bind(slot());
    }

    @Override
    public void copyFrom(MemorySegment source) {
        slotWriter.requireOpen();
        if (source.byteSize() != blockBytes) {
            throw new IllegalArgumentException(
                    "the source has " + source.byteSize() + " bytes; a block of this namespace has " + blockBytes);
        }
        slotWriter.copyIn(source, List.of(slot()));
        checksummed = true;
    }

    @Override
    public SealOutcome seal() {
        slotWriter.requireOpen();
        if (!checksummed) {
            slotWriter.addToChecksum(slot());
        }
        return slotWriter.seal();
    }

    @Override
    public SealOutcome seal(int checksum) {
        return slotWriter.seal(checksum);
    }

    @Override
    public void close() {
        slotWriter.close();
    }

    private MemorySegment slot() {
        HostStore store = slotWriter.store();
        return store.slotSegment(store.records().hostPage(slotWriter.record()), blockBytes);
    }
}
