package io.kvcache.server.block;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.quota.Quota;
import io.kvcache.server.quota.Stock;
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
/// **Order.** Of the blocks below which there is none the one goes that was not used for longest, so chains lose their
/// tails, and a block that another one is being put below stays. What was there before a restart goes before all that
/// was used since.
///
/// **Truth** is the store: what it has evicted leaves here when its event is heard, and what a put or an event says is
/// there is asked for before it counts.
///
/// About 200 bytes of heap a block.
///
/// **Threads.** Any. The store is never asked to forget under this lock.
public final class BlockStock implements Stock {

    /// Blocks that one put evicts at the most.
    private static final int EVICT_AT_ONCE = 1000;

    private final Quota quota;
    private final Map<BlockKey, Held> held = new HashMap<>();
    private final TreeMap<Long, Held> leaves = new TreeMap<>();
    private final LongAdder evicted = new LongAdder();
    private final LongAdder refused = new LongAdder();
    private long unused = Long.MIN_VALUE;
    private long bytes;

    /// @param quota of the tenant, which is told of the blocks from now on
    public BlockStock(Quota quota) {
        this.quota = quota;
        quota.add(this);
    }

    /// A block that counts; guarded by the stock.
    private static final class Held {
        private final BlockCatalog catalog;
        private final BlockKey key;
        private final @Nullable BlockKey parent;
        private final long bytes;
        private int below;
        private long use;

        Held(BlockCatalog catalog, BlockKey key, @Nullable BlockKey parent, long bytes) {
            this.catalog = catalog;
            this.key = key;
            this.parent = parent;
            this.bytes = bytes;
        }
    }

    /// What there is of a tenant's blocks and what became of them.
    ///
    /// @param blocks that count
    /// @param usedBytes that they take
    /// @param evicted blocks that went because of the quota
    /// @param refused blocks for which the quota had no room, and nothing could go
    public record Stats(long blocks, long usedBytes, long evicted, long refused) {}

    /// Room for one block, and a hold on the one before it, until it is stored or given up.
    public final class Claim implements AutoCloseable {

        private final Quota.Share share;
        private final @Nullable BlockKey parent;
        private boolean open = true;

        private Claim(Quota.Share share, @Nullable BlockKey parent) {
            this.share = share;
            this.parent = parent;
        }

        /// The block is in the store.
        void stored(BlockCatalog catalog, BlockKey key, long blockBytes) {
            if (enter(new Held(catalog, key, parent, Quota.charge(blockBytes)))) {
                share.keep();
            }
            close();
            check(key);
        }

        @Override
        public void close() {
            if (open) {
                open = false;
                share.close();
                hold(parent, -1);
            }
        }
    }

    /// Makes room for one block; null when that cannot be.
    @Nullable
    Claim claim(@Nullable BlockKey parent, long blockBytes) {
        long wanted = Quota.charge(blockBytes);
        hold(parent, 1);
        Quota.Share share = quota.take(wanted);
        for (int i = 0; share == null && i < EVICT_AT_ONCE; i++) {
            Stock stalest = quota.fits(wanted) ? quota.stalest() : null;
            if (stalest == null || !stalest.evictOldest()) {
                break;
            }
            share = quota.take(wanted);
        }
        if (share == null) {
            hold(parent, -1);
            refused.increment();
            return null;
        }
        return new Claim(share, parent);
    }

    /// Has a block stay, or not any longer, because one is being put below it.
    private synchronized void hold(@Nullable BlockKey key, int change) {
        Held block = key == null ? null : held.get(key);
        if (block != null) {
            below(block, change);
        }
    }

    private void below(Held block, int change) {
        if (block.below == 0) {
            leaves.remove(block.use, block);
        }
        block.below = Math.max(0, block.below + change); // one that came anew meanwhile was not held
        if (block.below == 0) {
            leaves.put(block.use, block);
        }
    }

    /// A block is in the store, as an event or a listing says. An event may be late: what is gone by now takes no
    /// room, not even for a moment, in which another one would have to go for it.
    void found(BlockCatalog catalog, BlockKey key, @Nullable BlockKey parent, long blockBytes) {
        if (has(key) || !catalog.contains(key)) {
            return;
        }
        Held block = new Held(catalog, key, parent, Quota.charge(blockBytes));
        if (enter(block)) {
            quota.enter(block.bytes);
            check(key);
        }
    }

    private synchronized boolean has(BlockKey key) {
        return held.containsKey(key);
    }

    /// Blocks that the store has from before the start, in any order.
    void foundUnused(BlockCatalog catalog, long blockBytes) {
        List<Held> fresh = new ArrayList<>();
        catalog.list()
                .forEach(each -> fresh.add(new Held(catalog, each.key(), each.parent(), Quota.charge(blockBytes))));
        fresh.removeIf(block -> !enterUnused(block));
        fresh.forEach(block -> hold(block.parent, 1));
        fresh.forEach(block -> check(block.key));
    }

    private synchronized boolean enterUnused(Held block) {
        if (held.putIfAbsent(block.key, block) != null) {
            return false;
        }
        block.use = unused++;
        leaves.put(block.use, block);
        bytes += block.bytes;
        quota.enter(block.bytes);
        return true;
    }

    /// Answers whether it was not there.
    private synchronized boolean enter(Held block) {
        if (held.putIfAbsent(block.key, block) != null) {
            return false;
        }
        bytes += block.bytes;
        block.use = quota.nextUse();
        leaves.put(block.use, block);
        hold(block.parent, 1);
        return true;
    }

    /// A block is read.
    synchronized void used(BlockKey key) {
        Held block = held.get(key);
        if (block != null) {
            boolean leaf = leaves.remove(block.use, block);
            block.use = quota.nextUse();
            if (leaf) {
                leaves.put(block.use, block);
            }
        }
    }

    /// An event said that a block may be gone.
    void check(BlockKey key) {
        Held block;
        synchronized (this) {
            block = held.get(key);
        }
        if (block != null && !block.catalog.contains(key)) {
            leave(block);
        }
    }

    /// Events were lost: any of them may be gone.
    void checkAll() {
        List<BlockKey> keys;
        synchronized (this) {
            keys = List.copyOf(held.keySet());
        }
        keys.forEach(this::check);
    }

    /// Answers whether it was there.
    private synchronized boolean leave(Held block) {
        if (!held.remove(block.key, block)) {
            return false;
        }
        if (block.below == 0) {
            leaves.remove(block.use, block);
        }
        bytes -= block.bytes;
        quota.leave(block.bytes);
        hold(block.parent, -1);
        return true;
    }

    @Override
    public synchronized long oldestUse() {
        return leaves.isEmpty() ? NOTHING : Math.max(0, leaves.firstKey());
    }

    @Override
    public boolean evictOldest() {
        Held oldest;
        synchronized (this) {
            Map.Entry<Long, Held> first = leaves.firstEntry();
            if (first == null) {
                return false;
            }
            oldest = first.getValue();
            leave(oldest);
        }
        oldest.catalog.dropForQuota(oldest.key);
        evicted.increment();
        return true;
    }

    /// What there is and what became of it.
    public synchronized Stats stats() {
        return new Stats(held.size(), bytes, evicted.sum(), refused.sum());
    }
}
