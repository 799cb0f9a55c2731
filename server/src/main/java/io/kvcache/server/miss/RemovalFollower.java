package io.kvcache.server.miss;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.util.function.IntFunction;
import java.util.function.Predicate;

/// Follows the store's events to record why blocks, and objects of other JVMs, have left.
///
/// **Threads.** [#tick] one at a time.
public final class RemovalFollower {

    /// Events looked at in one go.
    private static final int EVENT_BATCH = 4096;

    /// Goes of one tick; what is left waits for the next one.
    private static final int MAX_BATCHES_PER_TICK = 64;

    private final EventStream events;
    private final IntFunction<Namespace> namespaceById;
    private final Predicate<Namespace> keyspaces;
    private final MissCauses causes;
    private long next;

    /// @param events of the store
    /// @param names the namespaces that events name by number
    /// @param keyspaces namespaces whose objects keyspaces follow by themselves
    public RemovalFollower(
            EventStream events, IntFunction<Namespace> names, Predicate<Namespace> keyspaces, MissCauses causes) {
        this.events = events;
        this.keyspaces = keyspaces;
        this.causes = causes;
        namespaceById = names;
        next = events.nextSequence();
    }

    /// Hears what was removed since the last time.
    public void tick() {
        int heard = EVENT_BATCH;
        for (int go = 0; heard == EVENT_BATCH && go < MAX_BATCHES_PER_TICK; go++) {
            EventBatch batch = events.since(next, EVENT_BATCH);
            next = batch.nextSequence();
            batch.events().forEach(this::onEvent);
            heard = batch.events().size();
        }
    }

    private void onEvent(CacheEvent event) {
        if (event.kind() != EventKind.STORED && !keyspaces.test(namespaceById.apply(event.namespaceId()))) {
            causes.record(new BlockKey(event.keyHi(), event.keyLo()), cause(event.kind()));
        }
    }

    private static MissCauses.Cause cause(EventKind kind) {
        return switch (kind) {
            case DROPPED -> MissCauses.Cause.DELETED;
            case QUOTA -> MissCauses.Cause.QUOTA;
            case STORED, EVICTED, REPLACED -> MissCauses.Cause.EVICTED;
        };
    }
}
