package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Records as tiers see them. Under the store's lock.
record TierBlocks(RecordPool pool, SlabPool slabs) {

    private static final long PAGE_BYTES = 4096;

    TierBlock hostBlock(int record) {
        return hostBlock(record, pool.checksum(record));
    }

    /// As its copy on disk is.
    TierBlock diskBlock(int record) {
        return hostBlock(record, pool.diskChecksum(record));
    }

    private TierBlock hostBlock(int record, int checksum) {
        int parent = pool.parent(record);
        int identity = pool.flags(record);
        return new TierBlock(
                pool.keyHi(record),
                pool.keyLo(record),
                parent == NONE ? 0 : pool.keyHi(parent),
                parent == NONE ? 0 : pool.keyLo(parent),
                RecordFlags.namespaceId(identity),
                RecordFlags.isObject(identity),
                pool.depth(record),
                Math.toIntExact(pool.bytes(record)),
                checksum,
                pool.engineHash(record));
    }

    /// The slots of a record that is resident or being filled, in whole pages.
    List<MemorySegment> pages(int record) {
        long bytes = (pool.bytes(record) + PAGE_BYTES - 1) & -PAGE_BYTES;
        return ObjectSegments.of(slabs, pool.hostPage(record), bytes);
    }
}
