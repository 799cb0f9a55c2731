package io.kvcache.core.store;

import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.SlotClass;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// One registered namespace: its number, where its blocks go, and what it has asked for.
public final class NamespaceEntry {

    private final int id;
    private final Namespace namespace;
    private final @Nullable SlotClass slotClass;
    private final int blockBytes;

    final LongAdder blocksRequested = new LongAdder();
    final LongAdder blocksFound = new LongAdder();
    final LongAdder blocksLoaded = new LongAdder();
    final LongAdder objectsRequested = new LongAdder();
    final LongAdder objectsFound = new LongAdder();

    /// Blocks and objects that are sealed; under the store's lock.
    long live;

    /// Their bytes; under the store's lock.
    long liveBytes;

    NamespaceEntry(int id, Namespace namespace, @Nullable SlotClass slotClass, int blockBytes) {
        this.id = id;
        this.namespace = namespace;
        this.slotClass = slotClass;
        this.blockBytes = blockBytes;
    }

    public int id() {
        return id;
    }

    public Namespace namespace() {
        return namespace;
    }

    /// How many parts the namespace has.
    ///
    /// @throws IllegalArgumentException when it has none, and so no blocks
    public int requireParts() {
        slotClass();
        return namespace.parts().size();
    }

    /// The class of the namespace's blocks.
    ///
    /// @throws IllegalArgumentException when the namespace has no parts, and so no blocks
    SlotClass slotClass() {
        if (slotClass == null) {
            throw new IllegalArgumentException(namespace + " has no parts: it takes objects, not blocks");
        }
        return slotClass;
    }

    /// Bytes of one block.
    public int blockBytes() {
        return blockBytes;
    }

    /// Counts a request for blocks.
    public void countRequest(int blocks, int found) {
        blocksRequested.add(blocks);
        blocksFound.add(found);
    }

    /// Counts blocks of an earlier request that have arrived from a slower tier.
    public void countLoaded(int blocks) {
        blocksFound.add(blocks);
        blocksLoaded.add(blocks);
    }

    /// Counts a look-up of an object.
    public void countObjectRequest(boolean found) {
        objectsRequested.increment();
        if (found) {
            objectsFound.increment();
        }
    }

    NamespaceStats stats() {
        return new NamespaceStats(
                namespace,
                blocksRequested.sum(),
                blocksFound.sum(),
                blocksLoaded.sum(),
                objectsRequested.sum(),
                objectsFound.sum(),
                live,
                liveBytes);
    }
}
