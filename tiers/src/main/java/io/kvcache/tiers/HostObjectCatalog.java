package io.kvcache.tiers;

import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.tree.RecordHandle;
import java.util.List;

/// The objects of one namespace of a store.
record HostObjectCatalog(HostStore store, NamespaceEntry namespace, Hints hints) implements ObjectCatalog {

    @Override
    public List<Entry> list() {
        return store.objects(namespace);
    }

    @Override
    public boolean contains(BlockKey digest) {
        long handle = store.lookup().findKnown(digest.hi(), digest.lo());
        return RecordHandle.isFound(handle) && isOwn(handle);
    }

    @Override
    public boolean drop(BlockKey digest) {
        return !isForeign(digest) && unpinIfDropped(digest, store.drop(digest.hi(), digest.lo()) > 0);
    }

    @Override
    public boolean dropForQuota(BlockKey digest) {
        return !isForeign(digest) && unpinIfDropped(digest, store.dropForQuota(digest.hi(), digest.lo()) > 0);
    }

    private boolean isOwn(long handle) {
        return store.lookup().isObjectOf(namespace, RecordHandle.record(handle));
    }

    /// A caller that knows digests could name a block, or an object of another namespace. A record that changes
    /// hands during the check may give either answer.
    private boolean isForeign(BlockKey digest) {
        long handle = store.lookup().findKnown(digest.hi(), digest.lo());
        return RecordHandle.isFound(handle) && !isOwn(handle);
    }

    private boolean unpinIfDropped(BlockKey digest, boolean dropped) {
        if (dropped) {
            hints.onObjectDropped(digest);
        }
        return dropped;
    }
}
