package io.kvcache.core.store;

import io.kvcache.core.event.EventLog;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.RecordStates.ExpiredBlocks;
import io.kvcache.core.store.RecordStates.RecordPins;
import io.kvcache.core.store.SlotAllocator.SlotClassPolicies;
import io.kvcache.core.store.TierRecovery.RecoveryExclusions;
import io.kvcache.core.store.WriteAdmission.NoveltyClassifier;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.RecordPool;

/// What the collaborators of one store share. Owned by the store's lock, where their own pages do not say
/// otherwise.
record StoreComponents(
        RecordPool pool,
        BlockTree tree,
        SlabPool slabs,
        SlotClassPolicies slotClassPolicies,
        NamespaceRegistry namespaceRegistry,
        EventLog events,
        StoreEvents storeEvents,
        RecordPins recordPins,
        DiskUsageTable diskUsageTable,
        WriteBackQueue writeBackQueue,
        RecoveryExclusions recoveryExclusions,
        MemoryShares memoryShares,
        ObjectLinks objectLinks,
        PrefetchTracker prefetchTracker,
        ExpiredBlocks expiredBlocks,
        NoveltyClassifier noveltyClassifier) {

    static StoreComponents of(RecordPool pool, SlabPool slabs, PolicyKind kind, EventLog events) {
        BlockTree tree = new BlockTree(pool);
        NamespaceRegistry namespaceRegistry = new NamespaceRegistry();
        ObjectLinks chains = new ObjectLinks(pool);
        SlotClassPolicies policies = new SlotClassPolicies(kind, chains, slabs);
        MemoryShares shares = new MemoryShares(pool, slabs);
        return new StoreComponents(
                pool,
                tree,
                slabs,
                policies,
                namespaceRegistry,
                events,
                new StoreEvents(pool, namespaceRegistry, events),
                new RecordPins(pool),
                new DiskUsageTable(pool, tree, policies.state(), shares),
                new WriteBackQueue(pool, tree, new WriteAdmission(pool, chains, namespaceRegistry, policies.state())),
                new RecoveryExclusions(),
                shares,
                chains,
                new PrefetchTracker(pool, shares),
                new ExpiredBlocks(pool, tree),
                new NoveltyClassifier(pool, policies, shares));
    }
}
