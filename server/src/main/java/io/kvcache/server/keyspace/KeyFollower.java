package io.kvcache.server.keyspace;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import java.util.function.Consumer;

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
    private final Consumer<KeyEntry> check;
    private long nextSequence;
    private long recheckFrom;
    private boolean rechecking;

    /// @param check asks the store for a key and takes it out of the index when it is gone
    KeyFollower(EventStream events, KeyIndex index, Consumer<KeyEntry> check) {
        this.events = events;
        this.index = index;
        this.check = check;
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
        if (batch.lost()) {
            rechecking = true;
            recheckFrom = 0;
        }
        for (CacheEvent event : batch.events()) {
            if (!event.kind().enters()) {
                KeyEntry entry = index.find(new BlockKey(event.keyHi(), event.keyLo()));
                if (entry != null) {
                    check.accept(entry);
                }
            }
        }
        return rechecking || batch.events().size() == GO;
    }

    private void recheck() {
        KeyIndex.Run run = index.run(recheckFrom, GO);
        run.entries().forEach(check);
        recheckFrom = run.next();
        rechecking = recheckFrom != 0;
    }
}
