package io.kvcache.core.policy;

import io.kvcache.core.policy.GhostCache.SetAssociativeTable;
import org.jspecify.annotations.Nullable;

/// Blocks that announced requests will use, with the number of requests and the time of the first announcement.
/// One policy instance keeps one.
///
/// A request that uses a block fulfils one announcement of it. The rest of a block's announcements is forgotten
/// when the last one is too long ago. So announcing a block many times does not exempt it for as many uses.
///
/// In a full set of [GhostCache.SetAssociativeTable] a new block replaces the one with the oldest last
/// announcement. An entry is
///
/// ```
/// first announcement (24 bits, in steps of 64 uses) | last one (16 bits, in steps of 4,096) | count (8 bits) |
/// tag of the fingerprint (16 bits)
/// ```
///
/// Times wrap around after a quarter of a billion uses. Nothing is kept before the first hint.
///
/// **Threads.** One writer, the holder of the store's lock.
final class AnnouncedRequests {

    /// Uses after which an announcement is given up.
    private static final int MIN_HORIZON = 1 << 16;

    private static final int HORIZON_IN_MEMORY = 4;

    /// No more requests are known to come.
    static final long NONE = -1;

    /// Number of sets, as a power of two: enough for a thousand requests of 128 blocks, in a MiB.
    private static final int SET_BITS = 14;

    private static final long COUNT_UNIT = 1L << SetAssociativeTable.TAG_BITS;
    private static final int MAX_COUNT = 0xFF;
    private static final int LAST_SHIFT = 24;
    private static final long LAST_MASK = 0xFFFF;
    private static final int LAST_STEP_BITS = 12;
    private static final int FIRST_SHIFT = 40;
    private static final long FIRST_MASK = 0xFF_FFFF;
    private static final int FIRST_STEP_BITS = 6;

    private @Nullable SetAssociativeTable sets;

    AnnouncedRequests() {}

    /// One more request is known to use a block, resident or not.
    ///
    /// @param now reading of the clock that orders uses
    /// @param maxAge uses after which an announcement counts no more
    void add(long fingerprint, long now, long maxAge) {
        SetAssociativeTable table = sets;
        if (table == null) {
            table = new SetAssociativeTable(SET_BITS);
            sets = table;
        }
        int place = find(table, fingerprint, now, maxAge);
        if (place < 0) {
            long entry = first(now) | last(now) | COUNT_UNIT | SetAssociativeTable.tag(fingerprint);
            table.set(slotFor(table, fingerprint, now), entry);
        } else {
            long known = (table.get(place) & ~(LAST_MASK << LAST_SHIFT)) | last(now);
            table.set(place, known + (count(known) < MAX_COUNT ? COUNT_UNIT : 0));
        }
    }

    /// A request uses a block.
    ///
    /// @param maxAge uses after which an announcement counts no more
    /// @return when the next request for it was announced, or [#NONE]
    long fulfil(long fingerprint, long now, long maxAge) {
        SetAssociativeTable table = sets;
        int place = table == null ? -1 : find(table, fingerprint, now, maxAge);
        if (table == null || place < 0) {
            return NONE;
        }
        long known = table.get(place);
        int left = count(known) - 1;
        if (left < 1) {
            table.set(place, 0);
            return NONE;
        }
        long announced = now - sinceFirst(known, now);
        long next = announced + (now - announced) / (left + 1);
        table.set(place, ((known & ~(FIRST_MASK << FIRST_SHIFT)) | first(next)) - COUNT_UNIT);
        return next;
    }

    /// When the next request for a block was announced, or [#NONE].
    private long nextAnnounced(long fingerprint, long now, long maxAge) {
        SetAssociativeTable table = sets;
        int place = table == null ? -1 : find(table, fingerprint, now, maxAge);
        return table == null || place < 0 ? NONE : now - sinceFirst(table.get(place), now);
    }

    /// The word of a block that was used just now. When more requests are known to come, it stands
    /// where the next of them was announced.
    long stateAfterUse(long word, long fingerprint, long maxAge) {
        return expectedState(word, fulfil(fingerprint, ImportanceWord.stamp(word), maxAge), ImportanceWord.NORMAL);
    }

    /// The word of a block that comes without a use. When requests are known to come, it stands
    /// where the first of them was announced.
    long stateWithoutUse(long word, long fingerprint, long maxAge) {
        return expectedState(
                word, nextAnnounced(fingerprint, ImportanceWord.stamp(word), maxAge), ImportanceWord.PREFETCHED);
    }

    /// Uses after which an announcement counts no more, with so many resident blocks.
    static long horizon(int size) {
        return Math.max(MIN_HORIZON, (long) HORIZON_IN_MEMORY * size);
    }

    private static long expectedState(long word, long announced, int status) {
        return announced == NONE
                ? ImportanceWord.withStatus(word, status)
                : ImportanceWord.withStamp(ImportanceWord.withStatus(word, ImportanceWord.EXPECTED), announced);
    }

    long bytes() {
        return sets == null ? 0 : sets.bytes();
    }

    /// The place of a block that is expected still, or -1.
    private static int find(SetAssociativeTable table, long fingerprint, long now, long maxAge) {
        int place = table.find(fingerprint);
        while (place >= 0 && sinceLast(table.get(place), now) > maxAge) {
            table.set(place, 0);
            place = table.find(fingerprint);
        }
        return place;
    }

    private static int slotFor(SetAssociativeTable table, long fingerprint, long now) {
        int from = table.firstSlot(fingerprint);
        int place = from;
        for (int i = from; i < from + SetAssociativeTable.WAYS && table.get(place) != 0; i++) {
            if (table.get(i) == 0 || sinceLast(table.get(i), now) > sinceLast(table.get(place), now)) {
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
        return (int) (entry >>> SetAssociativeTable.TAG_BITS) & MAX_COUNT;
    }
}
