package io.kvcache.server.keyspace;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import io.kvcache.server.miss.MissCauses;

/// Follows the store's events, so that the index loses the keys of values that were evicted.
///
/// An event is only a reason to look: whether the key is still there is asked of the store. So it does not matter
/// that a value may have been replaced since, and after a gap in the events every key is asked for once, a bounded
/// number at a time.
///
/// **Threads.** Any; one at a time follows, the others wait for it.
final class EvictionListener {

    /// Events or keys looked at in one go: about a millisecond.
    private static final int BATCH = 4096;

    private final EventStream events;
    private final KeyspaceWrites writes;
    private long nextSequence;
    private long recheckFrom;
    private boolean rechecking;

    EvictionListener(EventStream events, KeyspaceWrites writes) {
        this.events = events;
        this.writes = writes;
        nextSequence = events.nextSequence();
    }

    /// Catches up with the events there are now, in at most `maxBatches` goes.
    synchronized void processEvents(int maxBatches) {
        for (int go = 0; go < maxBatches; go++) {
            if (!processBatch()) {
                return;
            }
        }
    }

    /// Answers whether there is more to do.
    private boolean processBatch() {
        if (rechecking) {
            recheckIndex();
            return true;
        }
        EventBatch batch = events.since(nextSequence, BATCH);
        nextSequence = batch.nextSequence();
        if (batch.hasGap()) {
            rechecking = true;
            recheckFrom = 0;
        }
        for (CacheEvent event : batch.events()) {
            if (isRemoval(event.kind())) {
                removeIfGone(new BlockKey(event.keyHi(), event.keyLo()), cause(event.kind()));
            }
        }
        return rechecking || batch.events().size() == BATCH;
    }

    /// A newer value under the key stays listed: its writer has told the index.
    private static boolean isRemoval(EventKind kind) {
        return !kind.isAddition() && kind != EventKind.REPLACED;
    }

    private static MissCauses.Cause cause(EventKind kind) {
        return switch (kind) {
            case DROPPED -> MissCauses.Cause.DELETED;
            case QUOTA -> MissCauses.Cause.QUOTA;
            case STORED, EVICTED, REPLACED -> MissCauses.Cause.EVICTED;
        };
    }

    private void removeIfGone(BlockKey digest, MissCauses.Cause cause) {
        KeyEntry entry = writes.index().find(digest);
        if (entry == null) {
            writes.quotaEnforcer().removeUnindexedIfGone(digest);
        } else {
            removeIfGone(entry, cause);
        }
    }

    private void removeIfGone(KeyEntry entry, MissCauses.Cause cause) {
        if (writes.removeIfGone(entry, cause) && cause == MissCauses.Cause.EVICTED) {
            writes.counters().evicted.increment();
        }
    }

    private void recheckIndex() {
        if (recheckFrom == 0) {
            writes.quotaEnforcer().removeAllUnindexedGone();
        }
        KeyIndex.IndexPage indexPage = writes.index().page(recheckFrom, BATCH);
        indexPage.entries().forEach(entry -> removeIfGone(entry, MissCauses.Cause.EVICTED));
        recheckFrom = indexPage.next();
        rechecking = recheckFrom != 0;
    }
}
