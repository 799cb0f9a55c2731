package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.RecordPool;

/// What the policies think of blocks that lie elsewhere than in host memory too, and uses that happened there.
///
/// **Threads.** Owned by the store's lock.
final class Standing {

    private final RecordPool pool;
    private final BlockTree tree;
    private final Namespaces namespaces;
    private final ClassPolicies policies;
    private final Shares shares;
    private final DiskLedger disks;
    private final Offload offload;
    private final Lifecycle lifecycle;
    private final Over over;
    private final Cohorts cohorts;

    Standing(StoreParts parts, Lifecycle lifecycle) {
        pool = parts.pool();
        tree = parts.tree();
        namespaces = parts.namespaces();
        policies = parts.policies();
        shares = parts.shares();
        disks = parts.disks();
        offload = parts.offload();
        over = parts.over();
        cohorts = parts.cohorts();
        this.lifecycle = lifecycle;
    }

    /// How much a block is wanted by its policy's measure, which is [Double#NaN] for policies that have none; 0 when
    /// the block is not in the store.
    double worth(long keyHi, long keyLo) {
        int record = find(keyHi, keyLo);
        return record == NONE ? 0 : policyOf(record).score(record);
    }

    /// The same of a record that lies on a disk, to put several in order: 0 for all under a policy
    /// without a measure, and for what is [Over]. What is being read is in use, which nothing comes
    /// before.
    double rank(int record) {
        int state = lifecycle.state(record);
        if (state != Control.SEALED && state != Control.ON_DISK) {
            return Double.POSITIVE_INFINITY;
        }
        if (over.has(record)) {
            return 0;
        }
        double worth =
                Identity.isObject(pool.identity(record)) ? 0 : policyOf(record).score(record);
        double weight = state == Control.ON_DISK ? policies.state().weight(record) : 1; // else the policy's matter
        return Double.isNaN(worth) ? 0 : weight * worth;
    }

    /// A block was used; those above it are told of by themselves.
    void used(long keyHi, long keyLo) {
        int record = find(keyHi, keyLo);
        if (record == NONE) {
            return;
        }
        over.used(record);
        cohorts.used(record);
        if (lifecycle.state(record) == Control.SEALED) {
            lifecycle.policyOf(record).touch(record);
        } else {
            disks.order(record).touch(record);
            policyOf(record).onUsedElsewhere(record);
        }
        offload.used(record);
    }

    private int find(long keyHi, long keyLo) {
        int record = tree.findAny(keyHi, keyLo);
        int state = record == NONE ? Control.FREE : lifecycle.state(record);
        boolean here = state == Control.SEALED || state == Control.ON_DISK;
        return here && !Identity.isObject(pool.identity(record)) ? record : NONE;
    }

    private EvictionPolicy policyOf(int record) {
        if (lifecycle.state(record) == Control.SEALED) {
            return lifecycle.policyOf(record);
        }
        NamespaceEntry namespace = namespaces.byId(Identity.namespace(pool.identity(record)));
        return policies.of(namespace.slotClass().id(), shares.group(record));
    }
}
