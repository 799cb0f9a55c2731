package io.kvcache.tiers;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.Handle;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.movement.Movement;
import org.jspecify.annotations.Nullable;

/// Has what is on disk alone brought into host memory before anybody asks for it, if the store was
/// told to.
///
/// A disk that has [#BUSY] reads to do is left to them: what somebody waits for is not to wait for
/// a guess.
///
/// **Threads.** Any.
final class Prefetching {

    /// Reads that keep a drive busy.
    private static final int BUSY = 16;

    private final HostStore store;
    private final @Nullable Movement movement;

    Prefetching(HostTable.Source source) {
        store = source.store();
        movement = source.prefetch() ? source.movement() : null;
    }

    /// Begins to bring in an object that is on disk alone.
    ///
    /// @return whether it does
    boolean begin(BlockKey key) {
        Movement by = movement;
        long handle = by == null ? Handle.MISS : store.lookup().findKnown(key.hi(), key.lo());
        if (by == null || !Handle.found(handle)) {
            return false;
        }
        RecordPool records = store.records();
        int record = Handle.record(handle);
        long place = records.diskPlace(record);
        boolean away = records.hostPage(record) == RecordPool.NONE && place != RecordPool.NONE;
        int disk = away ? DiskNumber.of(place) : 0;
        if (!away || by.reads(disk) >= BUSY || !store.prefetch().begin(record, Handle.generation(handle))) {
            return false;
        }
        by.expect(record, disk);
        return true;
    }
}
