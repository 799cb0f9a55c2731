package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.EmptyBlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.LoadBatch;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.tree.RecordHandle;
import org.jspecify.annotations.Nullable;

/// Pins what host memory has of a chain, and has a disk bring what it has behind that.
///
/// **Threads.** Any.
final class Acquiring {

    private final HostTable.Source source;
    private final HostStore store;
    private final Onboarding onboarding;
    private final UseListeners listeners;
    private final Prefetching prefetching;

    Acquiring(HostTable.Source source, Onboarding onboarding, UseListeners listeners, Prefetching prefetching) {
        this.prefetching = prefetching;
        this.listeners = listeners;
        this.source = source;
        store = source.store();
        this.onboarding = onboarding;
    }

    /// As [io.kvcache.core.KvCache#acquire].
    BlockTable acquire(BlockChain chain, int from, long timeoutNanos) {
        if (from < 0 || from > chain.length()) {
            throw new IndexOutOfBoundsException("from is " + from + "; this chain takes 0 to " + chain.length());
        }
        Waiting.requireNotNegative(timeoutNanos);
        NamespaceEntry entry = store.require(chain.namespace());
        BlockTable table = known(entry, chain, from, timeoutNanos, null);
        boolean mayBeTold = timeoutNanos > 0
                && table.endBlock() < chain.length()
                && table.blocksToRecompute() == 0
                && source.recovering();
        return mayBeTold ? recovering(chain, table, timeoutNanos) : table;
    }

    private BlockTable recovering(BlockChain chain, BlockTable now, long timeoutNanos) {
        int from = now.firstBlock();
        return recovering(
                now,
                timeoutNanos,
                new RecoveringTable.Wanted(
                        chain.length(),
                        () -> store.lookup().matchKnown(chain, 0) == chain.length(),
                        deadline -> again(chain, from, deadline)));
    }

    /// A second look for a request that was counted at the first, and whose time began there.
    BlockTable again(BlockChain chain, int from, Deadline first) {
        return known(store.require(chain.namespace()), chain, from, Math.max(0, first.left()), first);
    }

    /// A table of what is known now, and of what is once the disks have told it.
    BlockTable recovering(BlockTable now, long timeoutNanos, RecoveringTable.Wanted wanted) {
        return RecoveringTable.of(source, now, timeoutNanos, wanted);
    }

    /// The blocks that the store knows of by now.
    ///
    /// @param timeoutNanos from now on
    /// @param first the deadline of the request whose second look this is; null of a request of its own
    private BlockTable known(
            NamespaceEntry entry, BlockChain chain, int from, long timeoutNanos, @Nullable Deadline first) {
        boolean counts = first == null;
        Hold hold = source.holders().enter(chain);
        long deepest = RecordHandle.MISS;
        BlockTable table = null;
        Onboarding.Coming coming;
        int known;
        try {
            deepest = store.lookup().pinDeepest(chain);
            int here = RecordHandle.isFound(deepest) ? store.records().depth(RecordHandle.record(deepest)) + 1 : 0;
            int found = Math.max(0, here - from);
            if (counts) {
                entry.countRequest(chain.length() - from, found);
            }
            coming = onboarding.begin(chain, here, from, timeoutNanos);
            LoadBatch loads = coming.loads();
            known = loads == null ? found : Math.max(0, here + loads.count() - from);
            if (loads != null) {
                LoadingTable.Blocks blocks = new LoadingTable.Blocks(entry, deepest, here, loads, from);
                Deadline deadline = first == null ? Deadline.in(source.clock(), timeoutNanos) : first;
                table = new LoadingTable(source, hold, blocks, deadline);
            } else if (found > 0) {
                table = new HostTable(source, hold, RecordHandle.record(deepest), from, entry.blockBytes());
            }
        } finally {
            if (table == null) {
                giveBack(hold, deepest);
            }
        }
        BlockTable taken = table == null ? new EmptyBlockTable(from) : table;
        if (counts) {
            tell(entry, chain, taken, known);
        }
        return AdvisedTable.of(taken, coming.left());
    }

    private void giveBack(Hold hold, long deepest) {
        if (RecordHandle.isFound(deepest)) {
            store.lookup().unpin(RecordHandle.record(deepest));
        }
        source.holders().leave(hold);
    }

    /// Says what was asked for to those who hear it; if that fails, the table's caller never gets it.
    private void tell(NamespaceEntry entry, BlockChain chain, BlockTable table, int known) {
        int from = table.firstBlock();
        try {
            listeners.asked(chain, from, known, entry.blockBytes());
            if (chain.length() > 0 && from + known == chain.length()) {
                var _ = prefetching.continued(chain);
            }
        } catch (RuntimeException | Error failed) {
            table.close();
            throw failed;
        }
    }
}
