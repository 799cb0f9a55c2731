package io.kvcache.tiers;

import io.kvcache.core.cost.PrefillCost;
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
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Has what is on disk brought into host memory: for a table, for a writer below it, for a hint, for an object's
/// reader. Does nothing in a store without disks.
final class DiskLoader {

    /// Divisor of host memory: one hint may bring in at most this share.
    private static final int PREFETCH_SHARE = 4;

    private final StoreContext storeContext;
    private final HostStore store;
    private final @Nullable TierScheduler tierScheduler;
    private final LoadOrComputePolicy loadOrComputePolicy;
    private final TtlQueue ttlQueue;

    DiskLoader(StoreContext storeContext, TtlQueue ttlQueue) {
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

    /// An object that is on its way from disk, and pinned from the start: it ends with the pin kept, or given
    /// back.
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

        /// Called once for each change: so it listens for the next before it looks at this one.
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

    /// Decides whether blocks that are on disk are loaded. They are left there if computing them takes less
    /// time, or if they would come too late.
    ///
    /// The policy of host memory gets the same ratio ([LoadToRecomputeRatio]), because a block that is read
    /// back in no time need not be kept there. Admission to disks by value learns where in a prompt computing
    /// takes longer.
    ///
    /// The time of a load is estimated from recent reads and from the queue of reads. A disk without reads
    /// gives no estimate, so one in [#PROBE_INTERVAL] such blocks is loaded all the same.
    ///
    /// **Threads.** Any.
    static final class LoadOrComputePolicy {

        private static final int PROBE_INTERVAL = 64;

        private final HostStore store;
        private final @Nullable PrefillCost prefill;
        private final LoadToRecomputeRatio loadToRecomputeRatio = new LoadToRecomputeRatio();
        private final AtomicInteger refusals = new AtomicInteger();
        private final LongAdder blocksLeftOnDisk = new LongAdder();

        /// @param prefill null to load whatever is there
        LoadOrComputePolicy(HostStore store, @Nullable PrefillCost prefill) {
            this.store = store;
            this.prefill = prefill;
            if (prefill != null) {
                store.tierPort().setPrefillCost(prefill);
            }
        }

        /// Blocks that were left on disk so far.
        long blocksLeftOnDisk() {
            return blocksLeftOnDisk.sum();
        }

        /// Blocks of a chain that are on disk alone, and those before them resident.
        record DiskRange(int residentBlocks, int knownBlocks) {
            int length() {
                return knownBlocks - residentBlocks;
            }
        }

        /// How many blocks of a span to load, from its first on.
        ///
        /// @param deadlineNanos how long the caller will wait
        int loadableBlocks(TierScheduler tierScheduler, BlockChain chain, DiskRange diskRange, long deadlineNanos) {
            PrefillCost cost = prefill;
            if (cost == null) {
                return diskRange.length();
            }
            updateCost(tierScheduler, chain, diskRange, cost);
            int loads = blocksWorthLoading(tierScheduler, chain, diskRange, deadlineNanos);
            if (loads == 0 && refusals.incrementAndGet() % PROBE_INTERVAL == 0) {
                return diskRange.length();
            }
            blocksLeftOnDisk.add(diskRange.length() - loads);
            return loads;
        }

        private void updateCost(TierScheduler tierScheduler, BlockChain chain, DiskRange diskRange, PrefillCost cost) {
            long tokens = chain.namespace().blockTokens();
            double loading = tierScheduler.estimateReadNanos(
                    (long) diskRange.length() * store.require(chain.namespace()).blockBytes());
            if (loading > 0) {
                double computing =
                        1e9 * cost.seconds(diskRange.residentBlocks * tokens, diskRange.knownBlocks * tokens);
                store.tierPort().setReloadCostRatio(loadToRecomputeRatio.record(loading, computing));
            }
        }

        /// How many blocks of a span are worth loading, from its first on, as far as is known now.
        ///
        /// @param deadlineNanos how long the caller will wait
        int blocksWorthLoading(TierScheduler tierScheduler, BlockChain chain, DiskRange diskRange, long deadlineNanos) {
            PrefillCost cost = prefill;
            if (cost == null) {
                return diskRange.length();
            }
            int blockBytes = store.require(chain.namespace()).blockBytes();
            long tokens = chain.namespace().blockTokens();
            int loads = diskRange.length();
            double loading = tierScheduler.estimateReadNanos((long) loads * blockBytes);
            while (loads > 0 && loading > deadlineNanos) {
                loads /= 2;
                loading = tierScheduler.estimateReadNanos((long) loads * blockBytes);
            }
            double computing =
                    1e9 * cost.seconds(diskRange.residentBlocks * tokens, (diskRange.residentBlocks + loads) * tokens);
            return loading >= computing ? 0 : loads;
        }

        /// Time to read blocks from disk as a share of the time to compute them, over the last requests.
        ///
        /// The policy of host memory weighs every block that has a copy by it, so one request that came while
        /// the disk was busy must not move it far. Times are added up before they are divided. Requests count
        /// by the blocks they load, and older ones for less and less.
        ///
        /// **Threads.** Any.
        static final class LoadToRecomputeRatio {

            /// A copy saves nothing less, however fast the disk: it may be gone first.
            private static final double MIN_RATIO = 0.05;

            /// Weight that earlier requests keep at each new one: the last 32 count for two thirds.
            private static final double DECAY = 1 - 1.0 / 32;

            private double loadNanosSum;
            private double computeNanosSum;

            /// A request found blocks on disk.
            ///
            /// @param loadNanos that reading them takes, 0 and up
            /// @param computeNanos that computing them takes, above 0
            /// @return the share by now, from a twentieth to 1
            synchronized double record(double loadNanos, double computeNanos) {
                loadNanosSum = DECAY * loadNanosSum + loadNanos;
                computeNanosSum = DECAY * computeNanosSum + computeNanos;
                return Math.clamp(loadNanosSum / computeNanosSum, MIN_RATIO, 1);
            }
        }
    }
}
