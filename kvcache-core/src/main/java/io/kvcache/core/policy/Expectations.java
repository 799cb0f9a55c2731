package io.kvcache.core.policy;

/// Blocks that requests will use which are known to come, how many requests, and when the first of them was
/// announced: what one policy instance was told.
///
/// A request that uses a block fulfils one announcement of it. What is left of a block's announcements is
/// forgotten when the last one is too long ago, so that announcing a block many times does not exempt it
/// for as many uses.
///
/// A table of sets of eight places. A block belongs to one set by its fingerprint, and the one of its set
/// whose last announcement is longest ago makes room for it. An entry is
///
/// ```
/// first announcement (24 bits, in steps of 64 uses) | last one (16 bits, in steps of 4,096) | count (8 bits) |
/// tag of the fingerprint (16 bits)
/// ```
///
/// and 0 is an empty place. Times wrap around after a quarter of a billion uses. One of ten thousand
/// strangers is taken for one that was announced. Nothing is kept before the first hint.
///
/// **Threads.** One writer, the holder of the store's lock.
final class Expectations {

    /// No more requests are known to come.
    static final long NONE = -1;

    /// Blocks that are expected at most: a thousand requests of 128 blocks, in a MiB.
    private static final int MOST_BLOCKS = 1 << 17;

    private static final int WAYS = 8;
    private static final int SET_SHIFT = Long.SIZE - Integer.numberOfTrailingZeros(MOST_BLOCKS / WAYS);
    private static final long SPREAD = 0x9E3779B97F4A7C15L;

    private static final int TAG_BITS = 16;
    private static final long TAG_MASK = (1 << TAG_BITS) - 1;
    private static final long ONE = 1L << TAG_BITS;
    private static final int MOST_COUNT = 0xFF;
    private static final int LAST_SHIFT = 24;
    private static final long LAST_MASK = 0xFFFF;
    private static final int LAST_STEP_BITS = 12;
    private static final int FIRST_SHIFT = 40;
    private static final long FIRST_MASK = 0xFF_FFFF;
    private static final int FIRST_STEP_BITS = 6;

    private long[] entries = {};

    Expectations() {}

    /// One more request is known to use a block, resident or not.
    ///
    /// @param now reading of the clock that orders uses
    /// @param longest uses after which an announcement counts no more
    void add(long fingerprint, long now, long longest) {
        if (entries.length == 0) {
            entries = new long[MOST_BLOCKS];
        }
        long spread = fingerprint * SPREAD;
        int place = find(spread, now, longest);
        if (place < 0) {
            place = placeFor(spread, now);
            entries[place] = first(now) | last(now) | ONE | tag(spread);
        } else {
            long known = (entries[place] & ~(LAST_MASK << LAST_SHIFT)) | last(now);
            entries[place] = known + (count(known) < MOST_COUNT ? ONE : 0);
        }
    }

    /// A request uses a block.
    ///
    /// @param longest uses after which an announcement counts no more
    /// @return when the next request for it was announced, or [#NONE]
    long fulfil(long fingerprint, long now, long longest) {
        int place = entries.length == 0 ? -1 : find(fingerprint * SPREAD, now, longest);
        if (place < 0) {
            return NONE;
        }
        long known = entries[place];
        int left = count(known) - 1;
        if (left < 1) {
            entries[place] = 0;
            return NONE;
        }
        long announced = now - sinceFirst(known, now);
        long next = announced + (now - announced) / (left + 1);
        entries[place] = ((known & ~(FIRST_MASK << FIRST_SHIFT)) | first(next)) - ONE;
        return next;
    }

    long bytes() {
        return (long) entries.length * Long.BYTES;
    }

    /// The place of a block that is expected still, or -1.
    private int find(long spread, long now, long longest) {
        int from = set(spread);
        for (int i = from; i < from + WAYS; i++) {
            if (entries[i] != 0 && (entries[i] & TAG_MASK) == tag(spread)) {
                if (sinceLast(entries[i], now) <= longest) {
                    return i;
                }
                entries[i] = 0;
            }
        }
        return -1;
    }

    private int placeFor(long spread, long now) {
        int from = set(spread);
        int place = from;
        for (int i = from; i < from + WAYS && entries[place] != 0; i++) {
            if (entries[i] == 0 || sinceLast(entries[i], now) > sinceLast(entries[place], now)) {
                place = i;
            }
        }
        return place;
    }

    private static long sinceFirst(long entry, long now) {
        return (((now >>> FIRST_STEP_BITS) - (entry >>> FIRST_SHIFT)) & FIRST_MASK) << FIRST_STEP_BITS;
    }

    private static long sinceLast(long entry, long now) {
        return (((now >>> LAST_STEP_BITS) - (entry >>> LAST_SHIFT)) & LAST_MASK) << LAST_STEP_BITS;
    }

    private static long first(long reading) {
        return ((reading >>> FIRST_STEP_BITS) & FIRST_MASK) << FIRST_SHIFT;
    }

    private static long last(long reading) {
        return ((reading >>> LAST_STEP_BITS) & LAST_MASK) << LAST_SHIFT;
    }

    private static int count(long entry) {
        return (int) (entry >>> TAG_BITS) & MOST_COUNT;
    }

    private static int set(long spread) {
        return (int) (spread >>> SET_SHIFT) * WAYS;
    }

    private static long tag(long spread) {
        return (spread >>> TAG_BITS) & TAG_MASK;
    }
}
