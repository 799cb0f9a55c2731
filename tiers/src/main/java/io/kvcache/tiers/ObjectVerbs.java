package io.kvcache.tiers;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.store.Reserved;
import io.kvcache.core.tree.Handle;
import org.jspecify.annotations.Nullable;

/// Opaque objects by byte-string key, over the store's records.
final class ObjectVerbs {

    private final HostTable.Source source;
    private final HostStore store;
    private final Waiting waiting;
    private final Onboarding onboarding;

    ObjectVerbs(HostTable.Source source, Waiting waiting, Onboarding onboarding) {
        this.onboarding = onboarding;
        this.source = source;
        this.store = source.store();
        this.waiting = waiting;
    }

    ObjectWriter put(Namespace namespace, byte[] key, long bytes, long timeoutNanos) {
        if (bytes < 1 || bytes > KvCache.MAX_OBJECT_BYTES) {
            throw new IllegalArgumentException(
                    "an object of " + bytes + " bytes; it takes 1 to " + KvCache.MAX_OBJECT_BYTES);
        }
        NamespaceEntry entry = store.require(namespace);
        BlockKey record = BlockKey.ofObject(namespace, key);
        int stored = Math.toIntExact(bytes + key.length);
        Hold hold = source.holders().enter(namespace);
        try {
            Reserved reserved = waiting.reserve(timeoutNanos, () -> store.reserveObject(entry, record, stored));
            return new HostObjectWriter(new Filling(source, hold, reserved), key, bytes);
        } catch (RuntimeException failed) {
            source.holders().leave(hold);
            throw failed;
        }
    }

    @Nullable
    ObjectView get(Namespace namespace, byte[] key, long timeoutNanos) {
        NamespaceEntry entry = store.require(namespace);
        BlockKey wanted = BlockKey.ofObject(namespace, key);
        Hold hold = source.holders().enter(namespace);
        long handle = store.lookup().pinKey(wanted.hi(), wanted.lo());
        if (!Handle.found(handle) && timeoutNanos > 0) {
            handle = onboarding.pinObject(wanted, timeoutNanos);
        }
        if (Handle.found(handle)) {
            int record = Handle.record(handle);
            long bytes = store.records().bytes(record) - key.length;
            StoredObject stored = new StoredObject(store.pieces(record), bytes);
            if (bytes > 0 && stored.hasKey(key)) {
                entry.askedObject(true);
                return new HostObjectView(source, hold, record, stored);
            }
            store.lookup().unpin(record);
        }
        source.holders().leave(hold);
        entry.askedObject(false);
        return null;
    }

    boolean contains(Namespace namespace, byte[] key) {
        store.require(namespace);
        BlockKey wanted = BlockKey.ofObject(namespace, key);
        return Handle.found(store.lookup().findKnown(wanted.hi(), wanted.lo()));
    }

    boolean drop(Namespace namespace, byte[] key) {
        store.require(namespace);
        BlockKey wanted = BlockKey.ofObject(namespace, key);
        return store.drop(wanted.hi(), wanted.lo()) > 0;
    }
}
