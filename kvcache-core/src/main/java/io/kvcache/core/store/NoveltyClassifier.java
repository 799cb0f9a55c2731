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
final class NoveltyClassifier {

    private final RecordPool pool;
    private final SlotClassPolicies policies;
    private final MemoryShares shares;

    NoveltyClassifier(RecordPool pool, SlotClassPolicies policies, MemoryShares shares) {
        this.pool = pool;
        this.policies = policies;
        this.shares = shares;
    }

    /// The cohort of a block of a chain, which nobody has.
    ///
    /// @param parent the record before it, or [io.kvcache.core.policy.RecordView#NONE]
    int classify(NamespaceEntry entry, BlockChain chain, int index, int parent) {
        int before = parent == NONE ? 0 : pool.flags(parent);
        if (RecordFlags.has(before, RecordFlags.FRESH) && RecordFlags.noveltyClass(before) >= 0) {
            return RecordFlags.noveltyClass(before);
        }
        EvictionPolicy policy = policies.find(entry.slotClass().id(), shares.groupOf(entry.id()));
        int known = policy == null ? index : firstUnknown(policy, chain, index);
        return NoveltyClass.of((long) (chain.length() - known) * chain.blockTokens());
    }

    /// The first block from one on that a policy does not remember, or the chain's length: it
    /// remembers a chain up to some block, but for few.
    private static int firstUnknown(EvictionPolicy policy, BlockChain chain, int from) {
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
    void onUsed(int record) {
        if (RecordFlags.has(pool.flags(record), RecordFlags.FRESH)) {
            pool.setFlags(record, RecordFlags.FRESH, false);
        }
    }
}
