package io.kvcache.tiers;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.HostStore.LoadOutcome;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.TierScheduler.LoadListeners;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Has what is on disk brought into host memory: for a table, for a writer below it, for a hint, for an object's
/// reader. Does nothing in a store without disks.
final class DiskLoader {

    /// Divisor of host memory: one hint may bring in at most this share.
    private static final int PREFETCH_SHARE = 4;

    private final HostBlockTable.StoreContext storeContext;
    private final HostStore store;
    private final @Nullable TierScheduler tierScheduler;
    private final LoadOrComputePolicy loadOrComputePolicy;
    private final TtlQueue ttlQueue;

    DiskLoader(HostBlockTable.StoreContext storeContext, TtlQueue ttlQueue) {
        this.ttlQueue = ttlQueue;
        this.storeContext = storeContext;
        store = storeContext.store();
        tierScheduler = storeContext.tierScheduler();
        loadOrComputePolicy = new LoadOrComputePolicy(store, storeContext.prefill());
    }

    /// Blocks of the chain from `resident` on that are on disk alone.
    int countOnDisk(BlockChain chain, int resident) {
        return tierScheduler == null ? 0 : store.lookup().matchKnown(chain, resident) - resident;
    }

    /// Those of them that are worth loading for a caller that waits no longer than this time.
    int blocksWorthLoading(BlockChain chain, int resident, long timeoutNanos) {
        TierScheduler by = timeoutNanos == 0 ? null : tierScheduler;
        int known = by == null ? resident : store.lookup().matchKnown(chain, resident);
        return by == null || known == resident
                ? 0
                : loadOrComputePolicy.blocksWorthLoading(
                        by, chain, new LoadOrComputePolicy.DiskRange(resident, known), timeoutNanos);
    }

    /// Loads started for a table.
    ///
    /// @param loadBatch blocks that come, each pinned once; null when none does
    /// @param blocksLeftOnDisk blocks behind these that are better computed than read
    record StartedLoads(@Nullable LoadBatch loadBatch, int blocksLeftOnDisk) {
        static final StartedLoads EMPTY = new StartedLoads(null, 0);
    }

    /// Begins to bring the blocks from `here` on for a table that begins with block `from`. The
    /// block before `here` is pinned.
    ///
    /// @param timeoutNanos how long the table waits
    /// @param stepBytes of each block that are to come before more of any other; 0 for whole blocks in order
    StartedLoads startLoads(BlockChain chain, int here, int from, long timeoutNanos, int stepBytes) {
        if (tierScheduler == null || timeoutNanos == 0 || here == chain.length()) {
            return StartedLoads.EMPTY;
        }
        int known = store.lookup().matchKnown(chain, here);
        if (known <= Math.max(here, from)) {
            return StartedLoads.EMPTY;
        }
        int to = here
                + loadOrComputePolicy.loadableBlocks(
                        tierScheduler, chain, new LoadOrComputePolicy.DiskRange(here, known), timeoutNanos);
        if (to <= from) {
            return new StartedLoads(null, known - here);
        }
        ttlQueue.releaseExpired(); // what is over makes room
        LoadBatch loadBatch =
                stepBytes > 0 ? store.beginLoadsInSteps(chain, here, to) : store.beginLoads(chain, here, to, 1);
        if (loadBatch.count() == 0) {
            return new StartedLoads(null, known - to);
        }
        if (stepBytes > 0) {
            tierScheduler.readInSteps(loadBatch, stepBytes);
        } else {
            tierScheduler.read(loadBatch, true, false);
        }
        return new StartedLoads(loadBatch, known - to);
    }

    /// Blocks that were left on disk, as computing them takes less time.
    long blocksLeftOnDisk() {
        return loadOrComputePolicy.blocksLeftOnDisk();
    }

    /// Has the blocks above a block that is about to be written brought in, if they are on disk alone: it becomes
    /// findable with them.
    void loadParents(BlockChain chain, int index, int record) {
        if (tierScheduler != null && isParentOnDisk(record)) {
            load(tierScheduler, chain, index, true);
        }
    }

    /// Returns whether the block above a reserved one, which has one, is on disk alone.
    private boolean isParentOnDisk(int record) {
        int parent = store.records().parent(record);
        return ControlWord.state(store.records().control(parent)) == ControlWord.ON_DISK;
    }

    /// Has blocks brought in that are likely to be wanted.
    ///
    /// @param here that are resident
    /// @return how many come
    int prefetch(BlockChain chain, int here) {
        if (tierScheduler == null || here == chain.length()) {
            return 0;
        }
        NamespaceEntry entry = store.require(chain.namespace());
        long most = store.capacityBytes() / PREFETCH_SHARE / Math.max(1, entry.blockBytes());
        int known = store.lookup().matchKnown(chain, here);
        return load(tierScheduler, chain, (int) Math.min(known, here + most), false);
    }

    /// Has objects brought in that are likely to be wanted.
    ///
    /// @return how many come
    int prefetch(List<BlockKey> keys) {
        TierScheduler by = tierScheduler;
        int come = 0;
        long left = store.capacityBytes() / PREFETCH_SHARE;
        for (int i = 0; i < keys.size() && by != null && left > 0; i++) {
            long handle = store.lookup().findKnown(keys.get(i).hi(), keys.get(i).lo());
            long bytes =
                    RecordHandle.isFound(handle) ? store.records().bytes(RecordHandle.record(handle)) : Long.MAX_VALUE;
            if (bytes <= left && prefetch(by, handle)) {
                left -= bytes;
                come++;
            }
        }
        return come;
    }

    private boolean prefetch(TierScheduler by, long handle) {
        int record = RecordHandle.record(handle);
        long address = store.records().exclusiveDiskAddress(record);
        boolean begun = address != RecordPool.NONE
                && store.beginLoad(record, RecordHandle.generation(handle), 0) == LoadOutcome.STARTED;
        if (begun) {
            by.prefetch(record, DiskAddress.diskOf(address));
        }
        return begun;
    }

    private int load(TierScheduler by, BlockChain chain, int to, boolean demanded) {
        long deepest = store.lookup().pinDeepest(chain);
        int here = RecordHandle.isFound(deepest) ? store.records().depth(RecordHandle.record(deepest)) + 1 : 0;
        try {
            if (here >= to) {
                return 0;
            }
            ttlQueue.releaseExpired();
            LoadBatch loadBatch = store.beginLoads(chain, here, to, 0);
            by.read(loadBatch, demanded, true);
            return loadBatch.count();
        } finally {
            if (RecordHandle.isFound(deepest)) {
                store.lookup().unpin(RecordHandle.record(deepest));
            }
        }
    }

    /// Begins to bring in an object that is on disk, and pins it at once.
    ///
    /// @return its [RecordHandle], or [RecordHandle#MISS] when it does not come
    long startObjectLoad(BlockKey key) {
        long handle = store.lookup().findKnown(key.hi(), key.lo());
        if (tierScheduler == null || !RecordHandle.isFound(handle)) {
            return RecordHandle.MISS;
        }
        int record = RecordHandle.record(handle);
        long address = store.records().diskAddress(record);
        ttlQueue.releaseExpired();
        LoadOutcome start = store.beginLoad(record, RecordHandle.generation(handle), 1);
        if (start == LoadOutcome.STARTED) {
            tierScheduler.read(record, DiskAddress.diskOf(address));
        } else if (start == LoadOutcome.JOINED) {
            tierScheduler.prioritize(record);
        }
        return start.isAvailable() ? handle : RecordHandle.MISS;
    }

    /// Waits for an object that [#startObjectLoad] has pinned.
    ///
    /// @return completes with whether it is here, and the pin the caller's
    CompletionStage<Boolean> awaitObjectAsync(int record, long timeoutNanos) {
        return tierScheduler == null
                ? CompletableFuture.completedFuture(true)
                : ObjectLoad.of(store, tierScheduler.loadListeners(), record, timeoutNanos);
    }

    /// Waits for an object that [#startObjectLoad] has pinned, by the store's clock.
    ///
    /// @return whether it is here, and the pin the caller's; otherwise the pin is gone
    boolean awaitObject(int record, long timeoutNanos) {
        if (tierScheduler == null || await(tierScheduler, record, timeoutNanos)) {
            return true;
        }
        store.lookup().unpin(record);
        return false;
    }

    private boolean await(TierScheduler by, int record, long timeoutNanos) {
        Object monitor = new Object();
        Runnable listener = () -> {
            synchronized (monitor) {
                monitor.notifyAll();
            }
        };
        by.loadListeners().add(record, listener);
        try {
            long start = storeContext.clock().nanos();
            synchronized (monitor) {
                while (isLoading(record) && storeContext.clock().nanos() - start < timeoutNanos) {
                    storeContext
                            .clock()
                            .await(monitor, timeoutNanos - (storeContext.clock().nanos() - start));
                }
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        } finally {
            by.loadListeners().remove(record, listener);
        }
        return ControlWord.state(store.records().control(record)) == ControlWord.SEALED;
    }

    private boolean isLoading(int record) {
        int state = ControlWord.state(store.records().control(record));
        return state == ControlWord.LOADING || state == ControlWord.LOADED;
    }

    /// An object that is on its way from disk, and pinned from the start: it ends with the pin kept, or given back.
    ///
    /// **Threads.** Any.
    private static final class ObjectLoad {

        private final HostStore store;
        private final LoadListeners loadListeners;
        private final int record;
        private final Runnable listener = this::onChanged;
        private final CompletableFuture<Boolean> arrived = new CompletableFuture<>();

        /// Takes over a pin.
        private ObjectLoad(HostStore store, LoadListeners loadListeners, int record) {
            this.store = store;
            this.loadListeners = loadListeners;
            this.record = record;
        }

        /// Waits for an object that was pinned once for this.
        ///
        /// @return completes with whether it is here, and the pin the caller's, no later than after the
        ///     time-out
        static CompletionStage<Boolean> of(
                HostStore store, LoadListeners loadListeners, int record, long timeoutNanos) {
            ObjectLoad arrival = new ObjectLoad(store, loadListeners, record);
            loadListeners.add(record, arrival.listener);
            arrival.check();
            if (!arrival.arrived.isDone()) {
                CompletableFuture.delayedExecutor(timeoutNanos, TimeUnit.NANOSECONDS, Runnable::run)
                        .execute(arrival::onTimeout);
            }
            return arrival.arrived;
        }

        /// Told once for each change: so listens for the next before looking at this one.
        private void onChanged() {
            loadListeners.add(record, listener);
            check();
        }

        private void check() {
            int state = ControlWord.state(store.records().control(record));
            if (state == ControlWord.SEALED) {
                complete(true);
            } else if (state != ControlWord.LOADING && state != ControlWord.LOADED) {
                complete(false);
            }
        }

        private void onTimeout() {
            complete(ControlWord.state(store.records().control(record)) == ControlWord.SEALED);
        }

        private void complete(boolean here) {
            loadListeners.remove(record, listener);
            if (!here && !arrived.isDone() && arrived.complete(false)) {
                store.lookup().unpin(record);
            } else if (here) {
                arrived.complete(true);
            }
        }
    }
}
