package io.kvcache.tiers;

import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Writes one object into its slots, and its key behind it.
final class HostObjectWriter implements ObjectWriter {

    private final Filling filling;
    private final long valueBytes;

    HostObjectWriter(Filling filling, byte[] key, long valueBytes) {
        this.filling = filling;
        this.valueBytes = valueBytes;
        if (filling.outcome() == PutOutcome.RESERVED) {
            stored().writeKey(key);
        }
    }

    @Override
    public PutOutcome outcome() {
        return filling.outcome();
    }

    @Override
    public List<MemorySegment> pieces() {
        filling.requireOpen();
        return stored().value().stream().map(filling::limit).toList();
    }

    @Override
    public void copyFrom(MemorySegment source) {
        filling.requireOpen();
        if (source.byteSize() != valueBytes) {
            throw new IllegalArgumentException(
                    "the source has " + source.byteSize() + " bytes; the room is for " + valueBytes);
        }
        StoredObject stored = stored();
        filling.copy(source, stored.value(), stored.key());
    }

    @Override
    public SealOutcome seal() {
        filling.requireOpen();
        return filling.seal(stored().pieces());
    }

    @Override
    public void close() {
        filling.close();
    }

    private StoredObject stored() {
        return new StoredObject(filling.store().pieces(filling.record()), valueBytes);
    }
}
