package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Records as tiers see them. Under the store's lock.
record RecordViews(RecordPool pool, SlabPool slabs) {

    private static final long PAGE_BYTES = 4096;

    TierBlock block(int record) {
        return block(record, pool.checksum(record));
    }

    /// As its copy on disk is.
    TierBlock onDisk(int record) {
        return block(record, pool.diskChecksum(record));
    }

    private TierBlock block(int record, int checksum) {
        int parent = pool.parent(record);
        int identity = pool.identity(record);
        return new TierBlock(
                pool.keyHi(record),
                pool.keyLo(record),
                parent == NONE ? 0 : pool.keyHi(parent),
                parent == NONE ? 0 : pool.keyLo(parent),
                Identity.namespace(identity),
                Identity.isObject(identity),
                pool.depth(record),
                Math.toIntExact(pool.bytes(record)),
                checksum,
                pool.engineHash(record));
    }

    /// The slots of a record that is resident or being filled, in whole pages.
    List<MemorySegment> pages(int record) {
        long bytes = (pool.bytes(record) + PAGE_BYTES - 1) & -PAGE_BYTES;
        return Pieces.of(slabs, pool.hostPage(record), bytes);
    }
}
