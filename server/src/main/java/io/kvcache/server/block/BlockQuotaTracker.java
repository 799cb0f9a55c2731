package io.kvcache.server.block;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.quota.Quota;
import io.kvcache.server.quota.Quota.EvictableStock;
import io.kvcache.tiers.BlockCatalog;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// The blocks of one tenant that has a quota: what they take, and which goes first.
///
/// **Order.** Evicts the least recently used leaf, so chains lose their tails. A block stays while a put below it
/// runs. Blocks from before a restart go before all blocks used since.
///
/// **Truth** is the store: what it has evicted leaves here when its event is heard, and what a put or an event
/// says is there is asked for before it counts.
///
/// About 200 bytes of heap a block.
///
/// **Threads.** Any. The store is never asked to forget under this lock.
public final class BlockQuotaTracker implements EvictableStock {

    /// Blocks that one put evicts at the most.
    private static final int MAX_EVICTIONS_PER_PUT = 1000;

    private final Quota quota;
    private final Map<BlockKey, TrackedBlock> tracked = new HashMap<>();
    private final TreeMap<Long, TrackedBlock> leaves = new TreeMap<>();
    private final LongAdder evicted = new LongAdder();
    private final LongAdder refused = new LongAdder();
    private long nextUnusedNumber = Long.MIN_VALUE;
    private long bytes;

    /// @param quota of the tenant, which is told of the blocks from now on
    public BlockQuotaTracker(Quota quota) {
        this.quota = quota;
        quota.register(this);
    }

    /// A block that counts; guarded by the stock.
    private static final class TrackedBlock {
        private final BlockCatalog catalog;
        private final BlockKey key;
        private final @Nullable BlockKey parent;
        private final long bytes;
        private int childCount;
        private long lastUse;

        TrackedBlock(BlockCatalog catalog, BlockKey key, @Nullable BlockKey parent, long bytes) {
            this.catalog = catalog;
            this.key = key;
            this.parent = parent;
            this.bytes = bytes;
        }
    }

    /// A tenant's stored blocks, and the counts of evicted and refused ones.
    ///
    /// @param blocks that count
    /// @param usedBytes that they take
    /// @param evicted blocks that went because of the quota
    /// @param refused blocks for which the quota had no room, and nothing could go
    public record Stats(long blocks, long usedBytes, long evicted, long refused) {}

    /// Room for one block, and a hold on the one before it, until it is stored or given up.
    public final class BlockReservation implements AutoCloseable {

        private final Quota.QuotaReservation quotaReservation;
        private final @Nullable BlockKey parent;
        private boolean open = true;

        private BlockReservation(Quota.QuotaReservation quotaReservation, @Nullable BlockKey parent) {
            this.quotaReservation = quotaReservation;
            this.parent = parent;
        }

        /// The block is in the store.
        void commit(BlockCatalog catalog, BlockKey key, long blockBytes) {
            if (add(new TrackedBlock(catalog, key, parent, Quota.chargedBytes(blockBytes)))) {
                quotaReservation.commit();
            }
            close();
            removeIfGone(key);
        }

        @Override
        public void close() {
            if (open) {
                open = false;
                quotaReservation.close();
                adjustChildren(parent, -1);
            }
        }
    }

    /// Makes room for one block; null when that cannot be.
    @Nullable
    BlockReservation reserve(@Nullable BlockKey parent, long blockBytes) {
        long wanted = Quota.chargedBytes(blockBytes);
        adjustChildren(parent, 1);
        Quota.QuotaReservation quotaReservation = quota.reserve(wanted);
        for (int i = 0; quotaReservation == null && i < MAX_EVICTIONS_PER_PUT; i++) {
            EvictableStock stalest = quota.canFit(wanted) ? quota.leastRecentlyUsed() : null;
            if (stalest == null || !stalest.evictOldest()) {
                break;
            }
            quotaReservation = quota.reserve(wanted);
        }
        if (quotaReservation == null) {
            adjustChildren(parent, -1);
            refused.increment();
            return null;
        }
        return new BlockReservation(quotaReservation, parent);
    }

    /// Has a block stay, or not any longer, because one is being put below it.
    private synchronized void adjustChildren(@Nullable BlockKey key, int change) {
        TrackedBlock block = key == null ? null : tracked.get(key);
        if (block != null) {
            adjustChildCount(block, change);
        }
    }

    private void adjustChildCount(TrackedBlock block, int change) {
        if (block.childCount == 0) {
            leaves.remove(block.lastUse, block);
        }
        block.childCount = Math.max(0, block.childCount + change); // one that came anew meanwhile was not held
        if (block.childCount == 0) {
            leaves.put(block.lastUse, block);
        }
    }

    /// A block is in the store, as an event or a listing says. An event may be late: what is gone by now takes no
    /// room, not even for a moment, in which another one would have to go for it.
    void track(BlockCatalog catalog, BlockKey key, @Nullable BlockKey parent, long blockBytes) {
        if (isTracked(key) || !catalog.contains(key)) {
            return;
        }
        TrackedBlock block = new TrackedBlock(catalog, key, parent, Quota.chargedBytes(blockBytes));
        if (add(block)) {
            quota.addUsage(block.bytes);
            removeIfGone(key);
        }
    }

    private synchronized boolean isTracked(BlockKey key) {
        return tracked.containsKey(key);
    }

    /// Blocks that the store has from before the start, in any order.
    void trackRecovered(BlockCatalog catalog, long blockBytes) {
        List<TrackedBlock> fresh = new ArrayList<>();
        catalog.list()
                .forEach(each -> fresh.add(
                        new TrackedBlock(catalog, each.key(), each.parent(), Quota.chargedBytes(blockBytes))));
        fresh.removeIf(block -> !addUnused(block));
        fresh.forEach(block -> adjustChildren(block.parent, 1));
        fresh.forEach(block -> removeIfGone(block.key));
    }

    private synchronized boolean addUnused(TrackedBlock block) {
        if (tracked.putIfAbsent(block.key, block) != null) {
            return false;
        }
        block.lastUse = nextUnusedNumber++;
        leaves.put(block.lastUse, block);
        bytes += block.bytes;
        quota.addUsage(block.bytes);
        return true;
    }

    /// Answers whether it was not there.
    private synchronized boolean add(TrackedBlock block) {
        if (tracked.putIfAbsent(block.key, block) != null) {
            return false;
        }
        bytes += block.bytes;
        block.lastUse = quota.nextUse();
        leaves.put(block.lastUse, block);
        adjustChildren(block.parent, 1);
        return true;
    }

    /// A block is read.
    synchronized void recordUse(BlockKey key) {
        TrackedBlock block = tracked.get(key);
        if (block != null) {
            boolean leaf = leaves.remove(block.lastUse, block);
            block.lastUse = quota.nextUse();
            if (leaf) {
                leaves.put(block.lastUse, block);
            }
        }
    }

    /// An event said that a block may be gone.
    void removeIfGone(BlockKey key) {
        TrackedBlock block;
        synchronized (this) {
            block = tracked.get(key);
        }
        if (block != null && !block.catalog.contains(key)) {
            remove(block);
        }
    }

    /// Events were lost: any of them may be gone.
    void removeAllGone() {
        List<BlockKey> keys;
        synchronized (this) {
            keys = List.copyOf(tracked.keySet());
        }
        keys.forEach(this::removeIfGone);
    }

    /// Answers whether it was there.
    private synchronized boolean remove(TrackedBlock block) {
        if (!tracked.remove(block.key, block)) {
            return false;
        }
        if (block.childCount == 0) {
            leaves.remove(block.lastUse, block);
        }
        bytes -= block.bytes;
        quota.removeUsage(block.bytes);
        adjustChildren(block.parent, -1);
        return true;
    }

    @Override
    public synchronized long oldestUse() {
        return leaves.isEmpty() ? NOTHING_EVICTABLE : Math.max(0, leaves.firstKey());
    }

    @Override
    public boolean evictOldest() {
        TrackedBlock oldest;
        synchronized (this) {
            Map.Entry<Long, TrackedBlock> first = leaves.firstEntry();
            if (first == null) {
                return false;
            }
            oldest = first.getValue();
            remove(oldest);
        }
        oldest.catalog.dropForQuota(oldest.key);
        evicted.increment();
        return true;
    }

    /// Returns the present numbers.
    public synchronized Stats stats() {
        return new Stats(tracked.size(), bytes, evicted.sum(), refused.sum());
    }
}
