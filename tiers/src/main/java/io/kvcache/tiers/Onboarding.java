package io.kvcache.tiers;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.LoadBatch;
import io.kvcache.core.store.LoadOutcome;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.movement.Movement;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/// Has what is on disk brought into host memory: for a table, for a writer below it, for a hint, for an object's
/// reader. Does nothing in a store without disks.
final class Onboarding {

    /// Of host memory: what one hint may bring in.
    private static final int EXPECT_SHARE = 4;

    private final HostTable.Source source;
    private final HostStore store;
    private final @Nullable Movement movement;
    private final LoadOrCompute loadOrCompute;
    private final Expiries expiries;

    Onboarding(HostTable.Source source, Expiries expiries) {
        this.expiries = expiries;
        this.source = source;
        store = source.store();
        movement = source.movement();
        loadOrCompute = new LoadOrCompute(store, source.prefill());
    }

    /// Blocks of the chain from `resident` on that are on disk alone.
    int onDisk(BlockChain chain, int resident) {
        return movement == null ? 0 : store.lookup().matchKnown(chain, resident) - resident;
    }

    /// Those of them that are worth bringing in to somebody who waits no longer than a time.
    int worthLoading(BlockChain chain, int resident, long timeoutNanos) {
        Movement by = timeoutNanos == 0 ? null : movement;
        int known = by == null ? resident : store.lookup().matchKnown(chain, resident);
        return by == null || known == resident
                ? 0
                : loadOrCompute.worthLoading(by, chain, new LoadOrCompute.Span(resident, known), timeoutNanos);
    }

    /// What comes for a table.
    ///
    /// @param loads blocks that come, each pinned once; null when none does
    /// @param left blocks behind these that are better computed
    record Coming(@Nullable LoadBatch loads, int left) {
        static final Coming NOTHING = new Coming(null, 0);
    }

    /// Begins to bring the blocks from `here` on for a table that begins with block `from`. The
    /// block before `here` is pinned.
    ///
    /// @param timeoutNanos how long the table waits
    Coming begin(BlockChain chain, int here, int from, long timeoutNanos) {
        if (movement == null || timeoutNanos == 0 || here == chain.length()) {
            return Coming.NOTHING;
        }
        int known = store.lookup().matchKnown(chain, here);
        if (known <= Math.max(here, from)) {
            return Coming.NOTHING;
        }
        int to = here + loadOrCompute.loadable(movement, chain, new LoadOrCompute.Span(here, known), timeoutNanos);
        if (to <= from) {
            return new Coming(null, known - here);
        }
        expiries.sweep(); // what is over makes room
        LoadBatch loads = store.beginLoads(chain, here, to, 1);
        if (loads.count() == 0) {
            return new Coming(null, known - to);
        }
        movement.read(loads, true, false);
        return new Coming(loads, known - to);
    }

    /// Blocks that were left on disk, as computing them takes less time.
    long left() {
        return loadOrCompute.left();
    }

    /// Has the blocks above a block that is about to be written brought in, if they are on disk alone: it becomes
    /// findable with them.
    void bringParents(BlockChain chain, int index, int record) {
        if (movement != null && isBelowDisk(record)) {
            bring(movement, chain, index, true);
        }
    }

    /// Whether the block above a reserved one, which has one, is on disk alone.
    boolean isBelowDisk(int record) {
        int parent = store.records().parent(record);
        return movement != null && ControlWord.state(store.records().control(parent)) == ControlWord.ON_DISK;
    }

    /// Has blocks brought in that are likely to be wanted.
    ///
    /// @param here that are resident
    /// @return how many come
    int expect(BlockChain chain, int here) {
        if (movement == null || here == chain.length()) {
            return 0;
        }
        NamespaceEntry entry = store.require(chain.namespace());
        long most = store.capacityBytes() / EXPECT_SHARE / Math.max(1, entry.blockBytes());
        int known = store.lookup().matchKnown(chain, here);
        return bring(movement, chain, (int) Math.min(known, here + most), false);
    }

    /// Has objects brought in that are likely to be wanted.
    ///
    /// @return how many come
    int expect(List<BlockKey> keys) {
        Movement by = movement;
        int come = 0;
        long left = store.capacityBytes() / EXPECT_SHARE;
        for (int i = 0; i < keys.size() && by != null && left > 0; i++) {
            long handle = store.lookup().findKnown(keys.get(i).hi(), keys.get(i).lo());
            long bytes =
                    RecordHandle.isFound(handle) ? store.records().bytes(RecordHandle.record(handle)) : Long.MAX_VALUE;
            if (bytes <= left && expect(by, handle)) {
                left -= bytes;
                come++;
            }
        }
        return come;
    }

    private boolean expect(Movement by, long handle) {
        int record = RecordHandle.record(handle);
        long place = store.records().exclusiveDiskAddress(record);
        boolean begun = place != RecordPool.NONE
                && store.beginLoad(record, RecordHandle.generation(handle), 0) == LoadOutcome.STARTED;
        if (begun) {
            by.expect(record, DiskAddress.diskOf(place));
        }
        return begun;
    }

    private int bring(Movement by, BlockChain chain, int to, boolean demanded) {
        long deepest = store.lookup().pinDeepest(chain);
        int here = RecordHandle.isFound(deepest) ? store.records().depth(RecordHandle.record(deepest)) + 1 : 0;
        try {
            if (here >= to) {
                return 0;
            }
            expiries.sweep();
            LoadBatch loads = store.beginLoads(chain, here, to, 0);
            by.read(loads, demanded, true);
            return loads.count();
        } finally {
            if (RecordHandle.isFound(deepest)) {
                store.lookup().unpin(RecordHandle.record(deepest));
            }
        }
    }

    /// Begins to bring in an object that is on disk, and pins it at once.
    ///
    /// @return its [RecordHandle], or [RecordHandle#MISS] when it does not come
    long beginObject(BlockKey key) {
        long handle = store.lookup().findKnown(key.hi(), key.lo());
        if (movement == null || !RecordHandle.isFound(handle)) {
            return RecordHandle.MISS;
        }
        int record = RecordHandle.record(handle);
        long place = store.records().diskAddress(record);
        expiries.sweep();
        LoadOutcome start = store.beginLoad(record, RecordHandle.generation(handle), 1);
        if (start == LoadOutcome.STARTED) {
            movement.read(record, DiskAddress.diskOf(place));
        } else if (start == LoadOutcome.JOINED) {
            movement.hurry(record);
        }
        return start.isAvailable() ? handle : RecordHandle.MISS;
    }

    /// Waits for an object that [#beginObject] has pinned.
    ///
    /// @return completes with whether it is here, and the pin the caller's
    CompletionStage<Boolean> arrival(int record, long timeoutNanos) {
        return movement == null
                ? CompletableFuture.completedFuture(true)
                : ObjectArrival.of(store, movement.arrivals(), record, timeoutNanos);
    }

    /// Waits for an object that [#beginObject] has pinned, by the store's clock.
    ///
    /// @return whether it is here, and the pin the caller's; otherwise the pin is gone
    boolean arrives(int record, long timeoutNanos) {
        if (movement == null || await(movement, record, timeoutNanos)) {
            return true;
        }
        store.lookup().unpin(record);
        return false;
    }

    private boolean await(Movement by, int record, long timeoutNanos) {
        Object monitor = new Object();
        Runnable listener = () -> {
            synchronized (monitor) {
                monitor.notifyAll();
            }
        };
        by.arrivals().listen(record, listener);
        try {
            long start = source.clock().nanos();
            synchronized (monitor) {
                while (coming(record) && source.clock().nanos() - start < timeoutNanos) {
                    source.clock().await(monitor, timeoutNanos - (source.clock().nanos() - start));
                }
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        } finally {
            by.arrivals().forget(record, listener);
        }
        return ControlWord.state(store.records().control(record)) == ControlWord.SEALED;
    }

    private boolean coming(int record) {
        int state = ControlWord.state(store.records().control(record));
        return state == ControlWord.LOADING || state == ControlWord.LOADED;
    }
}
