package io.kvcache.transport.remote;

import io.kvcache.transport.shm.SharedStore;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// A block where it lies in the server's memory, which is mapped here read-only. The server keeps it there
/// for as long as the lease lasts.
final class MappedBlock implements RemoteBlockTable.Block {

    private final SharedStore store;
    private final long handle;
    private final MemorySegment slot;

    private MappedBlock(SharedStore store, long handle, MemorySegment slot) {
        this.store = store;
        this.handle = handle;
        this.slot = slot;
    }

    /// The block that a handle of a lease stands for; null when it is not there as it should be, or the
    /// memory is not mapped any more.
    static @Nullable MappedBlock of(SharedStore store, long handle, long bytes) {
        if (!store.retain()) {
            return null;
        }
        MemorySegment slot = store.view(handle, bytes);
        if (slot == null) {
            store.release();
            return null;
        }
        return new MappedBlock(store, handle, slot);
    }

    @Override
    public MemorySegment segment() {
        return slot;
    }

    @Override
    public int checksum() {
        return store.checksum(handle);
    }

    @Override
    public boolean isValid() {
        return store.isCurrent(handle);
    }

    @Override
    public void free() {
        store.release();
    }
}
