package io.kvcache.tiers;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.shm.StagingArea;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.tiers.memory.SharedMemorySource;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;

/// The memory of a store that others may map.
record SharedHostMemory(HostStore store, SharedMemoryFiles files, Set<String> tenants, SharedMemorySource source)
        implements SharedMemory {

    /// Checks that the namespace's tenant may share this memory. Of tenants that may not read each other, only one
    /// side may lie in memory that tenants map.
    ///
    /// @throws IllegalArgumentException when tenants map this memory, and the namespace's tenant is not among them
    void requireTenant(Namespace namespace) {
        if (!tenants.isEmpty() && !tenants.contains(namespace.owner())) {
            throw new IllegalArgumentException("tenant = \"" + namespace.tenant() + "\" of " + namespace
                    + " is not of the trust domain whose tenants map this memory; allowed: "
                    + tenants.stream().sorted().collect(Collectors.joining("\", \"", "\"", "\"")));
        }
    }

    @Override
    public UUID proof() {
        return source.proof();
    }

    @Override
    public MemorySegment slots() {
        return store.memory();
    }

    @Override
    public boolean mayBeMappedBy(String tenant) {
        return tenants.contains(tenant);
    }

    @Override
    public int namespaceId(Namespace namespace) {
        return store.require(namespace).id();
    }

    @Override
    public void recordAccess(long handle) {
        int record = RecordHandle.record(handle);
        if (record >= 0 && record < store.records().capacity()) {
            store.lookup().touch(handle);
        }
    }

    @Override
    public long offsetOf(MemorySegment shown) {
        MemorySegment all = store.memory();
        long offset = shown.address() - all.address();
        if (offset < 0 || offset + shown.byteSize() > all.byteSize()) {
            throw new IllegalArgumentException("this memory is none of the store's");
        }
        return offset;
    }

    @Override
    public long maxStagingBytes() {
        return source.maxStagingBytes();
    }

    @Override
    public StagingArea createStagingArea(long bytes) {
        return source.createStagingArea(bytes);
    }
}
