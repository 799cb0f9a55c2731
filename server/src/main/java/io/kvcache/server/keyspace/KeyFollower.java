package io.kvcache.server.keyspace;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.Departed;
import java.util.concurrent.atomic.LongAdder;

/// Follows the store's events, so that the index loses the keys of values that were evicted.
///
/// An event is only a reason to look: whether the key is still there is asked of the store. So it does not matter
/// that a value may have been replaced since, and after a gap in the events every key is asked for once, a bounded
/// number at a time.
///
/// **Threads.** Any; one at a time follows, the others wait for it.
final class KeyFollower {

    /// Events or keys looked at in one go: about a millisecond.
    private static final int GO = 4096;

    private final EventStream events;
    private final KeyIndex index;
    private final Removal removal;
    private final Strangers strangers;
    private final LongAdder evicted;
    private long nextSequence;
    private long recheckFrom;
    private boolean rechecking;

    /// @param evicted counts the keys that the store took the room of
    KeyFollower(EventStream events, KeyIndex index, Removal removal, Strangers strangers, LongAdder evicted) {
        this.evicted = evicted;
        this.events = events;
        this.index = index;
        this.removal = removal;
        this.strangers = strangers;
        nextSequence = events.nextSequence();
    }

    /// Catches up with the events there are now, in at most `goes` goes.
    synchronized void follow(int goes) {
        for (int go = 0; go < goes; go++) {
            if (!step()) {
                return;
            }
        }
    }

    /// Answers whether there is more to do.
    private boolean step() {
        if (rechecking) {
            recheck();
            return true;
        }
        EventBatch batch = events.since(nextSequence, GO);
        nextSequence = batch.nextSequence();
        if (batch.hasGap()) {
            rechecking = true;
            recheckFrom = 0;
        }
        for (CacheEvent event : batch.events()) {
            if (takesAway(event.kind())) {
                check(new BlockKey(event.keyHi(), event.keyLo()), cause(event.kind()));
            }
        }
        return rechecking || batch.events().size() == GO;
    }

    /// What took the key of an older value is there, and whoever put it told the index.
    private static boolean takesAway(EventKind kind) {
        return !kind.isAddition() && kind != EventKind.REPLACED;
    }

    private static Departed.Cause cause(EventKind kind) {
        return switch (kind) {
            case DROPPED -> Departed.Cause.DELETED;
            case QUOTA -> Departed.Cause.QUOTA;
            case STORED, EVICTED, REPLACED -> Departed.Cause.EVICTED;
        };
    }

    private void check(BlockKey digest, Departed.Cause cause) {
        KeyEntry entry = index.find(digest);
        if (entry == null) {
            strangers.check(digest);
        } else {
            check(entry, cause);
        }
    }

    private void check(KeyEntry entry, Departed.Cause cause) {
        if (removal.check(entry, cause) && cause == Departed.Cause.EVICTED) {
            evicted.increment();
        }
    }

    private void recheck() {
        if (recheckFrom == 0) {
            strangers.checkAll();
        }
        KeyIndex.Run run = index.run(recheckFrom, GO);
        run.entries().forEach(entry -> check(entry, Departed.Cause.EVICTED));
        recheckFrom = run.next();
        rechecking = recheckFrom != 0;
    }
}
