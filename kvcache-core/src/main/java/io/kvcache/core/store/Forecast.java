package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Handle;
import io.kvcache.core.tree.RecordPool;
import java.util.concurrent.locks.ReentrantLock;

/// Tells policies what somebody knows of the future: that blocks are worth nothing any more, or that a request for
/// them will come. Chains are gone through a bounded number of blocks a turn of the lock.
///
/// **Threads.** Any.
final class Forecast {

    /// Blocks that are told of in one turn of the lock.
    static final int TURN = 256;

    private final BlockTree tree;
    private final RecordPool pool;
    private final Namespaces namespaces;
    private final ClassPolicies policies;
    private final Shares shares;
    private final Lifecycle lifecycle;
    private final Touches touches;
    private final ReentrantLock lock;

    Forecast(StoreParts parts, Lifecycle lifecycle, Touches touches, ReentrantLock lock) {
        tree = parts.tree();
        pool = parts.pool();
        namespaces = parts.namespaces();
        policies = parts.policies();
        shares = parts.shares();
        this.lifecycle = lifecycle;
        this.touches = touches;
        this.lock = lock;
    }

    /// Tail first, so that each is a leaf when its turn comes.
    void demote(BlockChain chain, int from) {
        for (int end = chain.length(); end > from; end -= TURN) {
            demote(chain, Math.max(from, end - TURN), end);
        }
    }

    private void demote(BlockChain chain, int from, int end) {
        lock.lock();
        try {
            touches.drain();
            int namespace = namespaces.number(chain.namespace());
            for (int index = end - 1; index >= from; index--) {
                int record = find(chain, index, namespace);
                if (record != NONE) {
                    lifecycle.policyOf(record).demote(record);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    boolean expect(BlockChain chain) {
        if (!policies.lookAhead()) {
            return false;
        }
        NamespaceEntry entry = namespaces.require(chain.namespace());
        for (int from = 0; from < chain.length(); from += TURN) {
            expect(chain, entry, from);
        }
        return true;
    }

    private void expect(BlockChain chain, NamespaceEntry entry, int from) {
        lock.lock();
        try {
            touches.drain();
            EvictionPolicy policy = policies.of(entry.slotClass().id(), shares.groupOf(entry.id()));
            int end = Math.min(chain.length(), from + TURN);
            for (int index = from; index < end; index++) {
                policy.announce(chain.keyLo(index));
                int record = find(chain, index, entry.id());
                if (record != NONE) {
                    lifecycle.policyOf(record).expect(record);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /// The record of a block that is resident, if it is of a namespace; under the lock.
    private int find(BlockChain chain, int index, int namespace) {
        long handle = tree.find(chain.keyHi(index), chain.keyLo(index));
        boolean own = Handle.found(handle) && Identity.isBlockOf(pool.identity(Handle.record(handle)), namespace);
        return own ? Handle.record(handle) : NONE;
    }
}
