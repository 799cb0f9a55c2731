package io.kvcache.tiers;

import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;

/// Writes one object into its slots, and its key behind it.
///
/// The checksum protects what leaves memory. A store with a disk has it taken as the bytes arrive; one without
/// leaves it until somebody asks for it ([StoredObject#checksum()]), as a client that writes over a fast link
/// would wait for it.
final class HostObjectWriter implements ObjectWriter {

    private final SlotWriter slotWriter;
    private final long valueBytes;
    private final StoredObject stored;
    private final boolean deferChecksum;
    private long checksummedBytes;

    HostObjectWriter(SlotWriter slotWriter, byte[] key, long valueBytes) {
        this.slotWriter = slotWriter;
        this.valueBytes = valueBytes;
        stored = new StoredObject(slotWriter.store(), slotWriter.record(), valueBytes);
        deferChecksum = !slotWriter.store().tierPort().hasDisks();
        if (slotWriter.outcome() == PutOutcome.RESERVED) {
            stored.writeKey(key);
        }
    }

    @Override
    public PutOutcome outcome() {
        return slotWriter.outcome();
    }

    @Override
    public List<MemorySegment> segments() {
        slotWriter.requireOpen();
        List<MemorySegment> pieces = stored.valueSegments();
        pieces.replaceAll(slotWriter::bind);
        return pieces;
    }

    @Override
    public void copyFrom(MemorySegment source) {
        slotWriter.requireOpen();
        if (source.byteSize() != valueBytes) {
            throw new IllegalArgumentException(
                    "the source has " + source.byteSize() + " bytes; the room is for " + valueBytes);
        }
        if (deferChecksum) {
            stored.copyFrom(source);
        } else {
            slotWriter.copyIn(source, stored.valueSegments());
        }
        checksummedBytes = valueBytes;
    }

    @Override
    public void advance(long bytes) {
        slotWriter.requireOpen();
        Objects.checkFromIndexSize(checksummedBytes, bytes, valueBytes);
        sum(bytes);
    }

    @Override
    public SealOutcome seal() {
        slotWriter.requireOpen();
        if (deferChecksum) {
            return slotWriter.seal(StoredObject.NO_CHECKSUM);
        }
        sum(stored.bytes() - checksummedBytes);
        return slotWriter.seal();
    }

    private void sum(long bytes) {
        if (!deferChecksum) {
            stored.visit(
                    checksummedBytes,
                    bytes,
                    (memory, from, length) -> slotWriter.addToChecksum(memory.asSlice(from, length)));
        }
        checksummedBytes += bytes;
    }

    @Override
    public SealOutcome seal(int checksum) {
        return slotWriter.seal(checksum);
    }

    @Override
    public void close() {
        slotWriter.close();
    }
}
