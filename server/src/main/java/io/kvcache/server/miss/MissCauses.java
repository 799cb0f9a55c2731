package io.kvcache.server.miss;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
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

    /// The cause of a key's absence.
    public enum Cause {
        /// It was never stored, as far as is known.
        NEVER_SEEN(0),
        /// The store evicted it.
        EVICTED(1),
        /// Its tenant's quota was full.
        QUOTA(2),
        /// Its TTL expired.
        EXPIRED(3),
        /// A client deleted it.
        DELETED(4),
        /// Another server of the cluster may have a later value, so it was given up.
        OUTDATED(5);

        private static final Cause[] ALL = values();

        private final long code;

        Cause(long code) {
            this.code = code;
        }

        private static Cause of(long code) {
            return code < ALL.length ? ALL[(int) code] : NEVER_SEEN;
        }

        /// The cause of a removal from the store.
        public static Cause of(EventKind kind) {
            return switch (kind) {
                case DROPPED -> DELETED;
                case QUOTA -> QUOTA;
                case STORED, EVICTED, REPLACED -> EVICTED;
            };
        }
    }

    /// A key's departure.
    ///
    /// @param secondsAgo at most 24 days; 0 when it was never seen
    public record Departure(Cause cause, long secondsAgo) {

        private static final Departure NONE = new Departure(Cause.NEVER_SEEN, 0);
    }

    /// The slots take half a MiB.
    private static final int SLOTS = 1 << 16;

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
    public void record(BlockKey key, Cause cause) {
        slots.setOpaque(slotOf(key), (key.lo() & KEY_MASK) | (second() & SECOND_MASK) << CAUSE_BITS | cause.code);
    }

    /// Returns the cause for a key that the store has just reported missing.
    public Cause causeOf(BlockKey key) {
        long word = slots.getOpaque(slotOf(key));
        return isOf(word, key) ? Cause.of(word & CAUSE_MASK) : Cause.NEVER_SEEN;
    }

    /// Returns the departure of a key that the store has just reported missing.
    public Departure departureOf(BlockKey key) {
        long word = slots.getOpaque(slotOf(key));
        Cause cause = Cause.of(word & CAUSE_MASK);
        return isOf(word, key) && cause != Cause.NEVER_SEEN
                ? new Departure(cause, (second() - (word >>> CAUSE_BITS)) & SECOND_MASK)
                : Departure.NONE;
    }

    private static boolean isOf(long word, BlockKey key) {
        return ((word ^ key.lo()) & KEY_MASK) == 0;
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
                causes.record(new BlockKey(event.keyHi(), event.keyLo()), MissCauses.Cause.of(event.kind()));
            }
        }
    }
}
