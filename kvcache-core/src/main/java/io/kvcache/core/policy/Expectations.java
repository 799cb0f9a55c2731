package io.kvcache.core.policy;

/// Blocks that requests will use which are known to come, how many requests, and when the first of them was announced.
///
/// A bounded memory: the blocks that were expected first are forgotten first. A request that uses a
/// block fulfils one expectation of it. Nothing is kept before the first hint.
///
/// **Threads.** One writer, the holder of the store's lock.
final class Expectations {

    /// Blocks that are expected at most: a thousand requests of 128 blocks, at 48 bytes each.
    private static final int MOST_BLOCKS = 1 << 17;

    /// No more requests are known to come.
    static final long NONE = -1;

    private static final int COUNT_BITS = 8;
    private static final int MOST_COUNT = (1 << COUNT_BITS) - 1;
    private static final long TIME_MASK = (1 << (Integer.SIZE - 1 - COUNT_BITS)) - 1;
    /// Times are kept in steps of 64 uses, and wrap around after half a billion.
    private static final int STEP_BITS = 6;

    private static final GhostTable NOTHING = new GhostTable(1);

    private GhostTable counts = NOTHING;

    Expectations() {}

    /// One more request is known to use a block, resident or not.
    ///
    /// @param now reading of the clock that orders uses
    void add(long fingerprint, long now) {
        if (counts == NOTHING) {
            counts = new GhostTable(MOST_BLOCKS);
        }
        int known = counts.take(fingerprint);
        counts.put(fingerprint, known == 0 ? entry(1, now) : known + (count(known) < MOST_COUNT ? 1 : 0));
    }

    /// A request uses a block.
    ///
    /// @return when the next request for it was announced, or [#NONE]
    long fulfil(long fingerprint, long now) {
        int known = counts == NOTHING ? 0 : counts.take(fingerprint);
        int left = count(known) - 1;
        if (left < 1) {
            return NONE;
        }
        long announced = now - ((((now >>> STEP_BITS) - (known >>> COUNT_BITS)) & TIME_MASK) << STEP_BITS);
        long next = announced + (now - announced) / (left + 1);
        counts.put(fingerprint, entry(left, next));
        return next;
    }

    long bytes() {
        return counts == NOTHING ? 0 : counts.bytes();
    }

    /// The time in the upper bits, as far as they go, the count in the lower.
    private static int entry(int count, long reading) {
        return (int) ((reading >>> STEP_BITS) & TIME_MASK) << COUNT_BITS | count;
    }

    private static int count(int entry) {
        return entry & MOST_COUNT;
    }
}
