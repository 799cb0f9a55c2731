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

    private final Filling filling;
    private final long valueBytes;
    private final StoredObject stored;
    private final boolean later;
    private long summed;

    HostObjectWriter(Filling filling, byte[] key, long valueBytes) {
        this.filling = filling;
        this.valueBytes = valueBytes;
        stored = new StoredObject(filling.store(), filling.record(), valueBytes);
        later = !filling.store().tierPort().hasDisks();
        if (filling.outcome() == PutOutcome.RESERVED) {
            stored.writeKey(key);
        }
    }

    @Override
    public PutOutcome outcome() {
        return filling.outcome();
    }

    @Override
    public List<MemorySegment> pieces() {
        filling.requireOpen();
        List<MemorySegment> pieces = stored.value();
        pieces.replaceAll(filling::limit);
        return pieces;
    }

    @Override
    public void copyFrom(MemorySegment source) {
        filling.requireOpen();
        if (source.byteSize() != valueBytes) {
            throw new IllegalArgumentException(
                    "the source has " + source.byteSize() + " bytes; the room is for " + valueBytes);
        }
        if (later) {
            stored.copyFrom(source);
        } else {
            filling.copy(source, stored.value());
        }
        summed = valueBytes;
    }

    @Override
    public void arrived(long bytes) {
        filling.requireOpen();
        Objects.checkFromIndexSize(summed, bytes, valueBytes);
        sum(bytes);
    }

    @Override
    public SealOutcome seal() {
        filling.requireOpen();
        if (later) {
            return filling.seal(StoredObject.UNSUMMED);
        }
        sum(stored.bytes() - summed);
        return filling.seal();
    }

    private void sum(long bytes) {
        if (!later) {
            stored.visit(summed, bytes, (memory, from, length) -> filling.sum(memory.asSlice(from, length)));
        }
        summed += bytes;
    }

    @Override
    public SealOutcome seal(int checksum) {
        return filling.seal(checksum);
    }

    @Override
    public void close() {
        filling.close();
    }
}
