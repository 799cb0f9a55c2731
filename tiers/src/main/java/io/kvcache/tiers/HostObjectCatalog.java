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
        return RecordHandle.isFound(store.lookup().findKnown(digest.hi(), digest.lo()));
    }

    @Override
    public boolean drop(BlockKey digest) {
        return unpinIfDropped(digest, store.drop(digest.hi(), digest.lo()) > 0);
    }

    @Override
    public boolean dropForQuota(BlockKey digest) {
        return unpinIfDropped(digest, store.dropForQuota(digest.hi(), digest.lo()) > 0);
    }

    private boolean unpinIfDropped(BlockKey digest, boolean dropped) {
        if (dropped) {
            hints.onObjectDropped(digest);
        }
        return dropped;
    }
}
