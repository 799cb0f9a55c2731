package io.kvcache.core.store;

import static io.kvcache.core.tree.RecordPool.NONE;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Handle;
import io.kvcache.core.tree.RecordPool;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/// Tells policies what somebody knows of objects, as [Forecast] does of blocks: of those that are
/// in host memory, and of those on disk that they are over. Lists are gone through a
/// bounded number of objects a turn of the lock.
///
/// **Threads.** Any.
public final class ObjectForecast {

    private final BlockTree tree;
    private final RecordPool pool;
    private final ClassPolicies policies;
    private final Lifecycle lifecycle;
    private final Touches touches;
    private final Forecast forecast;
    private final Endings endings;
    private final ReentrantLock lock;

    ObjectForecast(StoreParts parts, Lifecycle lifecycle, Touches touches, Forecast forecast, ReentrantLock lock) {
        tree = parts.tree();
        pool = parts.pool();
        policies = parts.policies();
        this.lifecycle = lifecycle;
        this.touches = touches;
        this.forecast = forecast;
        endings = new Endings(parts, lifecycle);
        this.lock = lock;
    }

    /// Makes objects the next victims, in memory and on disk, the last of them first.
    ///
    /// @param namespace of the objects
    /// @return of how many that was said
    public int demote(NamespaceEntry namespace, List<BlockKey> keys) {
        int told = 0;
        List<BlockKey> last = keys.reversed();
        for (int from = 0; from < last.size(); from += Forecast.TURN) {
            told += demoteTurn(namespace.id(), last.subList(from, Math.min(last.size(), from + Forecast.TURN)));
        }
        return told;
    }

    private int demoteTurn(int namespace, List<BlockKey> keys) {
        lock.lock();
        try {
            touches.drain();
            int told = 0;
            for (BlockKey key : keys) {
                int record = tree.findAny(key.hi(), key.lo());
                boolean own = record != NONE
                        && endings.isSettled(record)
                        && Identity.isObjectOf(pool.identity(record), namespace);
                if (own && endings.end(record)) {
                    told++;
                }
            }
            return told;
        } finally {
            lock.unlock();
        }
    }

    /// Says of which class of requests objects are.
    ///
    /// @param reuseClass 0 to [EvictionPolicy#REUSE_CLASSES], exclusive
    /// @return of how many it was said, 0 where the policy makes no use of it
    public int label(NamespaceEntry namespace, List<BlockKey> keys, int reuseClass) {
        return say(namespace, keys, (policy, record) -> {
            policy.label(record, reuseClass);
            return true;
        });
    }

    /// Says how much of what is in objects matters.
    ///
    /// @param halvings 0 to [EvictionPolicy#MOST_HALVINGS]
    /// @return of how many it was said, 0 where the policy makes no use of it
    public int weigh(NamespaceEntry namespace, List<BlockKey> keys, int halvings) {
        return say(namespace, keys, (policy, record) -> {
            policy.weigh(record, halvings);
            return true;
        });
    }

    private int say(NamespaceEntry namespace, List<BlockKey> keys, Saying saying) {
        if (!policies.listens()) {
            return 0;
        }
        policies.state().makeRoomForSaid(lock);
        return tell(namespace, keys, saying);
    }

    /// Requests for objects are known to come: policies that look ahead are told, to others they
    /// count as used.
    ///
    /// @param uses until then; those that are not worth their room as long are passed over
    /// @return of how many it was said
    public int expect(NamespaceEntry namespace, List<BlockKey> keys, long uses) {
        return tell(namespace, keys, (policy, record) -> {
            if (!forecast.isKept(policy, uses)) {
                return false;
            }
            if (policies.lookAhead()) {
                policy.announce(pool.keyLo(record));
                policy.expect(record);
            } else {
                policy.touch(record);
            }
            return true;
        });
    }

    private interface Saying {
        boolean of(EvictionPolicy policy, int record);
    }

    private int tell(NamespaceEntry namespace, List<BlockKey> keys, Saying saying) {
        int told = 0;
        for (int from = 0; from < keys.size(); from += Forecast.TURN) {
            told += tellTurn(namespace.id(), keys.subList(from, Math.min(keys.size(), from + Forecast.TURN)), saying);
        }
        return told;
    }

    private int tellTurn(int namespace, List<BlockKey> keys, Saying saying) {
        lock.lock();
        try {
            touches.drain();
            int told = 0;
            for (BlockKey key : keys) {
                int record = find(key, namespace);
                if (record != NONE && saying.of(lifecycle.policyOf(record), record)) {
                    told++;
                }
            }
            return told;
        } finally {
            lock.unlock();
        }
    }

    /// The record of an object that is resident, if it is of a namespace; under the lock.
    private int find(BlockKey key, int namespace) {
        long handle = tree.find(key.hi(), key.lo());
        boolean own = Handle.found(handle) && Identity.isObjectOf(pool.identity(Handle.record(handle)), namespace);
        return own ? Handle.record(handle) : NONE;
    }
}
