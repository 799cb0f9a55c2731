package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.RecordPool;

/// Records of which somebody said that they will not be used again, or not soon: their session is
/// over or has gone on without them, their time is, or nobody will come back to them.
///
/// None of them has a block below it that is not over itself. A use makes a record one like others,
/// and those above it; so does a new block below, and a request that is known to come.
///
/// **Threads.** Owned by the store's lock.
final class Over {

    /// Children that are looked at: a block with more is one that others go on from.
    private static final int MOST_CHILDREN = 64;

    private final RecordPool pool;
    private final BlockTree tree;
    private long count;

    Over(RecordPool pool, BlockTree tree) {
        this.pool = pool;
        this.tree = tree;
    }

    boolean has(int record) {
        return count > 0 && Identity.has(pool.identity(record), Identity.OVER);
    }

    /// Whether there is anything below a record that is not over, in whatever tier.
    boolean isGoneOnFrom(int record) {
        return pool.hasChildren(record) && !tree.allChildren(record, MOST_CHILDREN, this::isSpent);
    }

    private boolean isSpent(int child) {
        return has(child) || Control.state(pool.control(child)) == Control.DOOMED;
    }

    /// A record is over.
    void add(int record) {
        if (!has(record)) {
            pool.flag(record, Identity.OVER, true);
            count++;
        }
    }

    /// A record is used, or known to be, or one has come below others.
    void used(int record) {
        boolean first = true;
        for (int at = record; count > 0 && at != NONE && (first || has(at)); at = pool.parent(at)) {
            left(at);
            first = false;
        }
    }

    /// A record's number is about to be used for another.
    void left(int record) {
        if (has(record)) {
            pool.flag(record, Identity.OVER, false);
            count--;
        }
    }

    /// Checks how many there are.
    void validate() {
        long found = 0;
        for (int record = 0; record < pool.highWater(); record++) {
            boolean marked = Control.state(pool.control(record)) != Control.FREE
                    && Identity.has(pool.identity(record), Identity.OVER);
            found += marked ? 1 : 0;
        }
        if (found != count) {
            throw new AssertionError(found + " records are over, counted as " + count);
        }
    }
}
