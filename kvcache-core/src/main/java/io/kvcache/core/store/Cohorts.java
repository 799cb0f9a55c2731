package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.NoveltyClass;
import io.kvcache.core.tree.RecordPool;

/// Finds the [NoveltyClass] of a block that is put: how much of its prompt, from the first block put on,
/// nobody remembers.
///
/// Blocks of a prompt come one by one, and a prompt that is computed in parts comes with a chain
/// that grows: what is put behind a block that nobody has used since it was put, and that was not on
/// disk alone, is of the same cohort.
///
/// **Threads.** Owned by the store's lock.
final class Cohorts {

    private final RecordPool pool;
    private final ClassPolicies policies;
    private final Shares shares;

    Cohorts(RecordPool pool, ClassPolicies policies, Shares shares) {
        this.pool = pool;
        this.policies = policies;
        this.shares = shares;
    }

    /// The cohort of a block of a chain, which nobody has.
    ///
    /// @param parent the record before it, or [io.kvcache.core.policy.RecordView#NONE]
    int of(NamespaceEntry entry, BlockChain chain, int index, int parent) {
        int before = parent == NONE ? 0 : pool.identity(parent);
        if (Identity.has(before, Identity.FRESH) && Identity.cohort(before) >= 0) {
            return Identity.cohort(before);
        }
        EvictionPolicy policy = policies.find(entry.slotClass().id(), shares.groupOf(entry.id()));
        int known = policy == null ? index : remembered(policy, chain, index);
        return NoveltyClass.of((long) (chain.length() - known) * chain.blockTokens());
    }

    /// The first block from one on that a policy does not remember, or the chain's length: it
    /// remembers a chain up to some block, but for few.
    private static int remembered(EvictionPolicy policy, BlockChain chain, int from) {
        int low = from;
        int high = chain.length();
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (policy.hasGhost(chain.keyLo(middle))) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /// A record was used.
    void used(int record) {
        if (Identity.has(pool.identity(record), Identity.FRESH)) {
            pool.flag(record, Identity.FRESH, false);
        }
    }
}
