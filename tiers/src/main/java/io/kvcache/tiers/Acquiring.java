package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.EmptyBlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.Loads;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.tree.Handle;

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
        Hold hold = source.holders().enter(chain);
        long deepest = store.lookup().pinDeepest(chain);
        int here = Handle.found(deepest) ? store.records().depth(Handle.record(deepest)) + 1 : 0;
        int found = Math.max(0, here - from);
        entry.asked(chain.length() - from, found);
        Onboarding.Coming coming = onboarding.begin(chain, here, from, timeoutNanos);
        Loads loads = coming.loads();
        int known = loads == null ? found : Math.max(0, here + loads.count() - from);
        listeners.asked(chain, from, known, entry.blockBytes());
        if (chain.length() > 0 && from + known == chain.length()) {
            var _ = prefetching.continued(chain);
        }
        if (loads != null) {
            LoadingTable.Blocks blocks = new LoadingTable.Blocks(entry, deepest, here, loads, from);
            return AdvisedTable.of(new LoadingTable(source, hold, blocks, timeoutNanos), coming.left());
        }
        if (found > 0) {
            HostTable table = new HostTable(source, hold, Handle.record(deepest), from, entry.blockBytes());
            return AdvisedTable.of(table, coming.left());
        }
        if (here > 0) {
            store.lookup().unpin(Handle.record(deepest));
        }
        source.holders().leave(hold);
        return AdvisedTable.of(new EmptyBlockTable(from), coming.left());
    }
}
