package io.kvcache.server.keyspace;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.MissCauses;
import java.util.concurrent.atomic.LongAdder;

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
    private final KeyIndex index;
    private final KeyRemover keyRemover;
    private final UnindexedKeys unindexedKeys;
    private final LongAdder evicted;
    private long nextSequence;
    private long recheckFrom;
    private boolean rechecking;

    /// @param evicted counts the keys that the store took the room of
    EvictionListener(
            EventStream events, KeyIndex index, KeyRemover keyRemover, UnindexedKeys unindexedKeys, LongAdder evicted) {
        this.evicted = evicted;
        this.events = events;
        this.index = index;
        this.keyRemover = keyRemover;
        this.unindexedKeys = unindexedKeys;
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

    /// What took the key of an older value is there, and whoever put it told the index.
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
        KeyEntry entry = index.find(digest);
        if (entry == null) {
            unindexedKeys.removeIfGone(digest);
        } else {
            removeIfGone(entry, cause);
        }
    }

    private void removeIfGone(KeyEntry entry, MissCauses.Cause cause) {
        if (keyRemover.removeIfGone(entry, cause) && cause == MissCauses.Cause.EVICTED) {
            evicted.increment();
        }
    }

    private void recheckIndex() {
        if (recheckFrom == 0) {
            unindexedKeys.removeAllGone();
        }
        KeyIndex.IndexPage indexPage = index.page(recheckFrom, BATCH);
        indexPage.entries().forEach(entry -> removeIfGone(entry, MissCauses.Cause.EVICTED));
        recheckFrom = indexPage.next();
        rechecking = recheckFrom != 0;
    }
}
