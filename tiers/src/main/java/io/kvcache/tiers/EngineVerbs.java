package io.kvcache.tiers;

import io.kvcache.core.AccessListener;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.EmptyBlockTable;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.EngineBlock;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.store.PutReservation;
import io.kvcache.core.tree.RecordHandle;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Single blocks by their own key and that of the block before them, for those who do not have the
/// chain at hand.
///
/// A block that is in host memory is found by its key alone: all above it are there too. For one that
/// is on disk the chain is read off the records, and it is brought in as any other.
final class EngineVerbs {

    private final HostTable.Source source;
    private final HostStore store;
    private final Waiting waiting;
    private final Onboarding onboarding;
    private final Hints hints;
    private final UseListeners listeners;

    EngineVerbs(HostTable.Source source, Waiting waiting, Onboarding onboarding, Hints hints, UseListeners listeners) {
        this.listeners = listeners;
        this.source = source;
        this.waiting = waiting;
        this.onboarding = onboarding;
        this.hints = hints;
        store = source.store();
    }

    BlockWriter put(Namespace namespace, EngineKey key, @Nullable EngineKey parent, long timeoutNanos) {
        NamespaceEntry entry = store.require(namespace);
        entry.requireParts();
        EngineBlock block = new EngineBlock(
                key.toBlockKey(namespace), parent == null ? null : parent.toBlockKey(namespace), key.low64());
        Hold hold = source.holders().enter(namespace);
        try {
            PutReservation reserved =
                    waiting.reserve(timeoutNanos, sparing -> hints.room(() -> store.reserve(entry, block, sparing)));
            bringParents(namespace, block, reserved);
            if (reserved.outcome() == PutOutcome.RESERVED) {
                listeners.put(namespace, block.key(), block.parent(), entry.blockBytes(), false);
            }
            return new HostBlockWriter(new Filling(source, hold, reserved), entry.blockBytes());
        } catch (RuntimeException failed) {
            source.holders().leave(hold);
            throw failed;
        }
    }

    private void bringParents(Namespace namespace, EngineBlock block, PutReservation reserved) {
        BlockKey parent = block.parent();
        if (parent == null || reserved.outcome() != PutOutcome.RESERVED) {
            return;
        }
        List<BlockKey> above = onboarding.isBelowDisk(reserved.record()) ? store.ancestors(parent) : List.of();
        if (!above.isEmpty()) {
            BlockChain chain = BlockChain.ofKeys(namespace, above);
            onboarding.bringParents(chain, chain.length(), reserved.record());
        }
    }

    /// The table of a block in host memory, or null.
    @Nullable
    BlockTable resident(Namespace namespace, EngineKey key) {
        NamespaceEntry entry = store.require(namespace);
        entry.requireParts();
        BlockKey wanted = key.toBlockKey(namespace);
        Hold hold = source.holders().enter(namespace);
        long handle = store.lookup().pinBlock(entry, wanted);
        if (!RecordHandle.isFound(handle)) {
            source.holders().leave(hold);
            return null;
        }
        entry.countRequest(1, 1);
        listeners.asked(AccessListener.LookupKind.GET, namespace, wanted, entry.blockBytes());
        int record = RecordHandle.record(handle);
        return new HostTable(source, hold, record, store.records().depth(record), entry.blockBytes());
    }

    /// Whether a block is here or on disk.
    boolean knows(Namespace namespace, EngineKey key) {
        return store.lookup().containsBlock(store.require(namespace), key.toBlockKey(namespace));
    }

    /// The table of a block that is not known.
    BlockTable missing(Namespace namespace, EngineKey key) {
        store.require(namespace).countRequest(1, 0);
        listeners.asked(AccessListener.LookupKind.GET, namespace, key.toBlockKey(namespace), -1);
        return new EmptyBlockTable(0);
    }

    /// The chain that ends with a block that is known, or null.
    @Nullable
    BlockChain chainTo(Namespace namespace, EngineKey key) {
        List<BlockKey> keys = store.ancestors(key.toBlockKey(namespace));
        return keys.isEmpty() ? null : BlockChain.ofKeys(namespace, keys);
    }
}
