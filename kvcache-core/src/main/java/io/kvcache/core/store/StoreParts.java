package io.kvcache.core.store;

import io.kvcache.core.event.EventLog;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.RecordPool;

/// What the collaborators of one store share. Owned by the store's lock, where their own pages do not say
/// otherwise.
record StoreParts(
        RecordPool pool,
        BlockTree tree,
        SlabPool slabs,
        ClassPolicies policies,
        Namespaces namespaces,
        EventLog events,
        Reports reports,
        Pins pins,
        DiskLedger disks,
        Offload offload,
        Overtaken overtaken,
        Shares shares,
        ObjectChains chains,
        Prefetched prefetched,
        Over over,
        Cohorts cohorts) {

    static StoreParts of(RecordPool pool, SlabPool slabs, PolicyKind kind, EventLog events) {
        BlockTree tree = new BlockTree(pool);
        Namespaces namespaces = new Namespaces();
        ObjectChains chains = new ObjectChains(pool);
        ClassPolicies policies = new ClassPolicies(kind, chains, slabs);
        Shares shares = new Shares(pool, slabs);
        return new StoreParts(
                pool,
                tree,
                slabs,
                policies,
                namespaces,
                events,
                new Reports(pool, namespaces, events),
                new Pins(pool),
                new DiskLedger(pool, tree, policies.state(), shares),
                new Offload(pool, tree, new Prospects(pool, chains, namespaces, policies.state())),
                new Overtaken(),
                shares,
                chains,
                new Prefetched(pool, shares),
                new Over(pool, tree),
                new Cohorts(pool, policies, shares));
    }
}
