package io.kvcache.core.store;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Handle;
import java.util.concurrent.locks.ReentrantLock;

/// Tells policies what somebody knows of the future: that blocks are worth nothing any more, or that a request for
/// them will come.
///
/// **Threads.** Any.
final class Forecast {

    private final BlockTree tree;
    private final ClassPolicies policies;
    private final Lifecycle lifecycle;
    private final Touches touches;
    private final ReentrantLock lock;

    Forecast(StoreParts parts, Lifecycle lifecycle, Touches touches, ReentrantLock lock) {
        tree = parts.tree();
        policies = parts.policies();
        this.lifecycle = lifecycle;
        this.touches = touches;
        this.lock = lock;
    }

    /// Tail first, so that each is a leaf when its turn comes.
    void demote(BlockChain chain, int from) {
        lock.lock();
        try {
            touches.drain();
            for (int index = chain.length() - 1; index >= from; index--) {
                long handle = tree.find(chain.keyHi(index), chain.keyLo(index));
                if (Handle.found(handle)) {
                    policyOf(handle).demote(Handle.record(handle));
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
        lock.lock();
        try {
            touches.drain();
            for (int index = 0; index < chain.length(); index++) {
                policies.state().expect(chain.keyLo(index));
                long handle = tree.find(chain.keyHi(index), chain.keyLo(index));
                if (Handle.found(handle)) {
                    policyOf(handle).expect(Handle.record(handle));
                }
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    private EvictionPolicy policyOf(long handle) {
        return lifecycle.policyOf(Handle.record(handle));
    }
}
