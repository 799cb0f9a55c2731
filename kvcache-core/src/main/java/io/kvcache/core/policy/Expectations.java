package io.kvcache.core.policy;

import org.jspecify.annotations.Nullable;

/// Blocks that requests will use which are known to come, how many requests, and when the first of them was
/// announced: what one policy instance was told.
///
/// A request that uses a block fulfils one announcement of it. What is left of a block's announcements is
/// forgotten when the last one is too long ago, so that announcing a block many times does not exempt it
/// for as many uses.
///
/// Of a full set of [TaggedSets] the block whose last announcement is longest ago makes room. An entry is
///
/// ```
/// first announcement (24 bits, in steps of 64 uses) | last one (16 bits, in steps of 4,096) | count (8 bits) |
/// tag of the fingerprint (16 bits)
/// ```
///
/// Times wrap around after a quarter of a billion uses. Nothing is kept before the first hint.
///
/// **Threads.** One writer, the holder of the store's lock.
final class Expectations {

    /// Uses after which an announcement is given up.
    private static final int SHORTEST_HORIZON = 1 << 16;

    private static final int HORIZON_IN_MEMORY = 4;

    /// No more requests are known to come.
    static final long NONE = -1;

    /// Of the number of sets: so that blocks of a thousand requests of 128 are expected at most, in a MiB.
    private static final int SET_BITS = 14;

    private static final long ONE = 1L << TaggedSets.TAG_BITS;
    private static final int MOST_COUNT = 0xFF;
    private static final int LAST_SHIFT = 24;
    private static final long LAST_MASK = 0xFFFF;
    private static final int LAST_STEP_BITS = 12;
    private static final int FIRST_SHIFT = 40;
    private static final long FIRST_MASK = 0xFF_FFFF;
    private static final int FIRST_STEP_BITS = 6;

    private @Nullable TaggedSets sets;

    Expectations() {}

    /// One more request is known to use a block, resident or not.
    ///
    /// @param now reading of the clock that orders uses
    /// @param longest uses after which an announcement counts no more
    void add(long fingerprint, long now, long longest) {
        TaggedSets table = sets;
        if (table == null) {
            table = new TaggedSets(SET_BITS);
            sets = table;
        }
        int place = find(table, fingerprint, now, longest);
        if (place < 0) {
            long entry = first(now) | last(now) | ONE | TaggedSets.tag(fingerprint);
            table.put(placeFor(table, fingerprint, now), entry);
        } else {
            long known = (table.at(place) & ~(LAST_MASK << LAST_SHIFT)) | last(now);
            table.put(place, known + (count(known) < MOST_COUNT ? ONE : 0));
        }
    }

    /// A request uses a block.
    ///
    /// @param longest uses after which an announcement counts no more
    /// @return when the next request for it was announced, or [#NONE]
    long fulfil(long fingerprint, long now, long longest) {
        TaggedSets table = sets;
        int place = table == null ? -1 : find(table, fingerprint, now, longest);
        if (table == null || place < 0) {
            return NONE;
        }
        long known = table.at(place);
        int left = count(known) - 1;
        if (left < 1) {
            table.put(place, 0);
            return NONE;
        }
        long announced = now - sinceFirst(known, now);
        long next = announced + (now - announced) / (left + 1);
        table.put(place, ((known & ~(FIRST_MASK << FIRST_SHIFT)) | first(next)) - ONE);
        return next;
    }

    /// When the next request for a block was announced, or [#NONE].
    private long next(long fingerprint, long now, long longest) {
        TaggedSets table = sets;
        int place = table == null ? -1 : find(table, fingerprint, now, longest);
        return table == null || place < 0 ? NONE : now - sinceFirst(table.at(place), now);
    }

    /// The word of a block that was used just now. When more requests are known to come, it stands
    /// where the next of them was announced.
    long afterUse(long word, long fingerprint, long longest) {
        return expected(word, fulfil(fingerprint, BlockWord.stamp(word), longest), BlockWord.ORDINARY);
    }

    /// The word of a block that comes without a use. When requests are known to come, it stands
    /// where the first of them was announced.
    long ahead(long word, long fingerprint, long longest) {
        return expected(word, next(fingerprint, BlockWord.stamp(word), longest), BlockWord.AHEAD);
    }

    /// Uses after which an announcement counts no more, with so many resident blocks.
    static long horizon(int size) {
        return Math.max(SHORTEST_HORIZON, (long) HORIZON_IN_MEMORY * size);
    }

    private static long expected(long word, long announced, int standing) {
        return announced == NONE
                ? BlockWord.withStanding(word, standing)
                : BlockWord.withStamp(BlockWord.withStanding(word, BlockWord.EXPECTED), announced);
    }

    long bytes() {
        return sets == null ? 0 : sets.bytes();
    }

    /// The place of a block that is expected still, or -1.
    private static int find(TaggedSets table, long fingerprint, long now, long longest) {
        int place = table.find(fingerprint);
        while (place >= 0 && sinceLast(table.at(place), now) > longest) {
            table.put(place, 0);
            place = table.find(fingerprint);
        }
        return place;
    }

    private static int placeFor(TaggedSets table, long fingerprint, long now) {
        int from = table.first(fingerprint);
        int place = from;
        for (int i = from; i < from + TaggedSets.WAYS && table.at(place) != 0; i++) {
            if (table.at(i) == 0 || sinceLast(table.at(i), now) > sinceLast(table.at(place), now)) {
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
        return (int) (entry >>> TaggedSets.TAG_BITS) & MOST_COUNT;
    }
}
