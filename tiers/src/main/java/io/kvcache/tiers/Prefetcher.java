package io.kvcache.tiers;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.movement.TierScheduler;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Loads blocks that are only on disk into host memory before a request needs them, if the store was
/// told to.
///
/// A disk that has [#BUSY_READS] reads to do is left to them: a load that a caller waits for must not wait for
/// a guess.
///
/// **Threads.** Any.
final class Prefetcher {

    /// Reads that keep a drive busy.
    private static final int BUSY_READS = 16;

    /// Blocks of a continuation: what a turn adds, about.
    private static final int MAX_BLOCKS_AHEAD = 8;

    /// How long a caller without a timeout may wait: blocks that take longer are not loaded
    /// for him.
    static final long DEFAULT_DEADLINE_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final HostStore store;
    private final @Nullable TierScheduler tierScheduler;

    Prefetcher(StoreContext storeContext) {
        store = storeContext.store();
        tierScheduler = storeContext.prefetch() ? storeContext.tierScheduler() : null;
    }

    /// Returns whether blocks are prefetched at all.
    boolean isEnabled() {
        return tierScheduler != null;
    }

    /// A caller has matched a chain and will soon acquire it: begins to load
    /// in those of its blocks that are on disk alone, in their order.
    ///
    /// @param from the first that may be
    /// @param to behind the last that is known
    /// @return blocks that come
    int onMatch(BlockChain chain, int from, int to) {
        int index = from;
        while (tierScheduler != null && index < to && startLoad(chain.key(index))) {
            index++;
        }
        return index - from;
    }

    /// A caller reads all of a chain: begins to load the likeliest continuation, block by
    /// block.
    ///
    /// @param chain of at least one block
    /// @return blocks that come
    int onAcquire(BlockChain chain) {
        long last = tierScheduler == null ? RecordHandle.MISS : find(chain.key(chain.length() - 1));
        long next = RecordHandle.isFound(last) ? store.hints().likelyNextOnDisk(last) : RecordHandle.MISS;
        int blocks = 0;
        while (RecordHandle.isFound(next) && blocks < MAX_BLOCKS_AHEAD && startLoad(next)) {
            blocks++;
            next = store.hints().likelyNextOnDisk(next);
        }
        return blocks;
    }

    /// Begins to bring in what is on disk alone.
    ///
    /// @return whether it does
    boolean startLoad(BlockKey key) {
        long handle = tierScheduler == null ? RecordHandle.MISS : find(key);
        return RecordHandle.isFound(handle) && startLoad(handle);
    }

    private long find(BlockKey key) {
        return store.lookup().findKnown(key.hi(), key.lo());
    }

    private boolean startLoad(long handle) {
        TierScheduler by = tierScheduler;
        if (by == null) {
            return false;
        }
        int record = RecordHandle.record(handle);
        long address = store.records().exclusiveDiskAddress(record);
        boolean away = address != RecordPool.NONE;
        int disk = away ? DiskAddress.diskOf(address) : 0;
        if (!away
                || by.pendingReads(disk) >= BUSY_READS
                || !store.hints().startPrefetch(record, RecordHandle.generation(handle))) {
            return false;
        }
        by.prefetch(record, disk);
        return true;
    }
}
