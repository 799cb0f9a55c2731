package io.kvcache.tiers;

import io.kvcache.core.SharedFiles;
import io.kvcache.core.SharedMemory;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.Handle;
import java.lang.foreign.MemorySegment;
import java.util.Set;

/// The memory of a store that others may map.
record HostShare(HostStore store, SharedFiles files, Set<String> tenants) implements SharedMemory {

    @Override
    public MemorySegment slots() {
        return store.memory();
    }

    @Override
    public boolean mayBeMappedBy(String tenant) {
        return tenants.contains(tenant);
    }

    @Override
    public void touched(long handle) {
        int record = Handle.record(handle);
        if (record >= 0 && record < store.records().capacity()) {
            store.lookup().touch(handle);
        }
    }

    @Override
    public long place(MemorySegment shown) {
        return place(store, shown);
    }

    static long place(HostStore store, MemorySegment shown) {
        MemorySegment all = store.memory();
        long offset = shown.address() - all.address();
        if (offset < 0 || offset + shown.byteSize() > all.byteSize()) {
            throw new IllegalArgumentException("this memory is none of the store's");
        }
        return offset;
    }
}
