package io.kvcache.server.miss;

import io.kvcache.core.identity.BlockKey;
import java.util.concurrent.atomic.AtomicLongArray;

/// Why the keys that left last did, so that a miss can say more than that there is nothing.
///
/// A table that is written over: of two keys with one place the later one stays. What is not in it counts as never
/// seen, so the share of such misses is at most too high.
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
        DELETED(4);

        private final long code;

        Cause(long code) {
            this.code = code;
        }

        private static Cause of(long code) {
            for (Cause each : values()) {
                if (each.code == code) {
                    return each;
                }
            }
            return NEVER_SEEN;
        }
    }

    /// The slots take half a MiB.
    private static final int SLOTS = 1 << 16;

    /// The bits of a word that hold the cause; the others are the key's.
    private static final long CAUSE_BITS = 7;

    private final AtomicLongArray slots = new AtomicLongArray(SLOTS);

    /// Notes why a key has left the store.
    public void record(BlockKey key, Cause cause) {
        slots.setOpaque(slotOf(key), (key.lo() & ~CAUSE_BITS) | cause.code);
    }

    /// Returns the cause for a key that the store has just reported missing.
    public Cause causeOf(BlockKey key) {
        long word = slots.getOpaque(slotOf(key));
        boolean known = (word & ~CAUSE_BITS) == (key.lo() & ~CAUSE_BITS);
        return known ? Cause.of(word & CAUSE_BITS) : Cause.NEVER_SEEN;
    }

    private static int slotOf(BlockKey key) {
        return (int) key.hi() & (SLOTS - 1);
    }
}
