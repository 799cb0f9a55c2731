package io.kvcache.server.miss;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.miss.MissLog.Reason;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.IntFunction;
import java.util.function.LongSupplier;
import java.util.function.Predicate;

/// Why and when the keys that left last did, so that a miss can say more than that there is nothing.
///
/// A table that is written over: of two keys with one place the later one stays. What is not in it counts
/// as never seen, so the share of such misses is at most too high. A word is
///
/// ```
/// key (40 bits) | second (21) | cause (3)
/// ```
///
/// **Threads.** Any.
public final class MissCauses {

    /// A key's departure.
    ///
    /// @param secondsAgo at most 24 days; 0 when it was never seen
    public record Departure(Reason cause, long secondsAgo) {

        private static final Departure NONE = new Departure(Reason.NEVER_SEEN, 0);
    }

    /// The slots take half a MiB.
    private static final int SLOTS = 1 << 16;

    private static final List<Reason> CAUSES = List.of(Reason.values());
    private static final int CAUSE_BITS = 3;
    private static final long CAUSE_MASK = (1 << CAUSE_BITS) - 1;
    private static final long SECOND_MASK = (1 << 21) - 1;
    private static final long KEY_MASK = -1L << 24;

    private final LongSupplier nanos;
    private final long startNanos;
    private final AtomicLongArray slots = new AtomicLongArray(SLOTS);

    /// @param nanos a clock
    public MissCauses(LongSupplier nanos) {
        this.nanos = nanos;
        startNanos = nanos.getAsLong();
    }

    /// Notes why a key has left the store.
    ///
    /// @param cause up to [Reason#OUTDATED]
    public void record(BlockKey key, Reason cause) {
        slots.setOpaque(
                slotOf(key), (key.lo() & KEY_MASK) | (second() & SECOND_MASK) << CAUSE_BITS | CAUSES.indexOf(cause));
    }

    /// Returns the cause for a key that the store has just reported missing.
    public Reason causeOf(BlockKey key) {
        return causeOf(key, slots.getOpaque(slotOf(key)));
    }

    /// Returns the departure of a key that the store has just reported missing.
    public Departure departureOf(BlockKey key) {
        long word = slots.getOpaque(slotOf(key));
        Reason cause = causeOf(key, word);
        return cause != Reason.NEVER_SEEN
                ? new Departure(cause, (second() - (word >>> CAUSE_BITS)) & SECOND_MASK)
                : Departure.NONE;
    }

    private static Reason causeOf(BlockKey key, long word) {
        boolean same = ((word ^ key.lo()) & KEY_MASK) == 0;
        return same ? CAUSES.get((int) (word & CAUSE_MASK)) : Reason.NEVER_SEEN;
    }

    private long second() {
        return TimeUnit.NANOSECONDS.toSeconds(nanos.getAsLong() - startNanos);
    }

    private static int slotOf(BlockKey key) {
        return (int) key.hi() & (SLOTS - 1);
    }

    /// Follows the store's events to record why blocks, and objects of other JVMs, have left.
    ///
    /// **Threads.** [#tick] one at a time.
    public static final class RemovalFollower {

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
                causes.record(new BlockKey(event.keyHi(), event.keyLo()), Reason.of(event.kind()));
            }
        }
    }
}
