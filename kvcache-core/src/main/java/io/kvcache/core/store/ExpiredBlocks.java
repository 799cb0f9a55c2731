package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;

/// Records of which somebody said that they will not be used again, or not soon: their session is
/// over or has gone on without them, their time is, or nobody will come back to them.
///
/// None of them has a block below it that is not over itself. A use makes a record one like others,
/// and those above it; so does a new block below, and a request that is known to come.
///
/// **Threads.** Owned by the store's lock.
final class ExpiredBlocks {

    /// Children that are looked at: a block with more is one that others go on from.
    private static final int MAX_CHILDREN = 64;

    private final RecordPool pool;
    private final BlockTree tree;
    private long count;

    ExpiredBlocks(RecordPool pool, BlockTree tree) {
        this.pool = pool;
        this.tree = tree;
    }

    boolean contains(int record) {
        return count > 0 && RecordFlags.has(pool.flags(record), RecordFlags.EXPIRED);
    }

    /// Whether there is anything below a record that is not over, in whatever tier.
    boolean hasLiveChildren(int record) {
        return pool.hasChildren(record) && !tree.allChildrenMatch(record, MAX_CHILDREN, this::isExpiredOrDeleted);
    }

    private boolean isExpiredOrDeleted(int child) {
        return contains(child) || ControlWord.state(pool.control(child)) == ControlWord.DELETED;
    }

    /// A record is over.
    void add(int record) {
        if (!contains(record)) {
            pool.setFlags(record, RecordFlags.EXPIRED, true);
            count++;
        }
    }

    /// A record is used, or known to be, or one has come below others.
    void onUsed(int record) {
        boolean first = true;
        for (int at = record; count > 0 && at != NONE && (first || contains(at)); at = pool.parent(at)) {
            remove(at);
            first = false;
        }
    }

    /// A record's number is about to be used for another.
    void remove(int record) {
        if (contains(record)) {
            pool.setFlags(record, RecordFlags.EXPIRED, false);
            count--;
        }
    }

    /// Checks how many there are.
    void validate() {
        long found = 0;
        for (int record = 0; record < pool.highWaterMark(); record++) {
            boolean marked = ControlWord.state(pool.control(record)) != ControlWord.FREE
                    && RecordFlags.has(pool.flags(record), RecordFlags.EXPIRED);
            found += marked ? 1 : 0;
        }
        if (found != count) {
            throw new AssertionError(found + " records are over, counted as " + count);
        }
    }
}
