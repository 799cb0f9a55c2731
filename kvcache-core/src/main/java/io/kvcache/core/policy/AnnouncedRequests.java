package io.kvcache.core.policy;

import io.kvcache.core.policy.GhostCache.SetAssociativeTable;
import org.jspecify.annotations.Nullable;

/// Blocks that announced requests will use, with the times at which the next of these requests were announced. One
/// policy instance keeps one.
///
/// A request that uses a block fulfils one announcement of it, the earliest. The times of the next [#EXACT] are
/// kept as they were; those of more lie between them and the last one, and are taken to lie evenly. Where one
/// estimate for all of them stood, a longer queue found fewer blocks than a shorter one. The rest of a block's
/// announcements is forgotten when the last one is too long ago. So announcing a block many times does not exempt
/// it for as many uses.
///
/// In a full set of [GhostCache.SetAssociativeTable] a new block replaces the one with the oldest last
/// announcement. An entry is
///
/// ```
/// last announcement (32 bits) | count (16) | tag of the fingerprint (16)
/// ```
///
/// and beside it the [#EXACT] times, of 32 bits. They wrap around after four billion uses. Nothing is kept before
/// the first hint.
///
/// **Threads.** One writer, the holder of the store's lock.
final class AnnouncedRequests {

    /// Uses after which an announcement is given up.
    private static final int MIN_HORIZON = 1 << 16;

    private static final int HORIZON_IN_MEMORY = 4;

    /// No more requests are known to come.
    static final long NONE = -1;

    /// Number of sets, as a power of two: enough for a thousand requests of 128 blocks, in four MiB.
    private static final int SET_BITS = 14;

    /// Announcements of a block whose times are kept.
    static final int EXACT = 6;

    private static final int COUNT_SHIFT = SetAssociativeTable.TAG_BITS;
    private static final int MAX_COUNT = 0xFFFF;
    private static final int LAST_SHIFT = 32;

    private @Nullable SetAssociativeTable sets;

    /// [#EXACT] for each place of the table.
    private int[] times = new int[0];

    AnnouncedRequests() {}

    /// One more request is known to use a block, resident or not.
    ///
    /// @param now reading of the clock that orders uses
    /// @param maxAge uses after which an announcement counts no more
    void add(long fingerprint, long now, long maxAge) {
        SetAssociativeTable table = sets;
        if (table == null) {
            table = new SetAssociativeTable(SET_BITS);
            times = new int[EXACT * table.capacity()];
            sets = table;
        }
        int place = find(table, fingerprint, now, maxAge);
        int count = place < 0 ? 0 : count(table.get(place));
        place = place < 0 ? slotFor(table, fingerprint, now) : place;
        if (count < EXACT) {
            times[EXACT * place + count] = (int) now;
        }
        long tag = SetAssociativeTable.tag(fingerprint);
        table.set(place, now << LAST_SHIFT | (long) Math.min(MAX_COUNT, count + 1) << COUNT_SHIFT | tag);
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
        long entry = table.get(place);
        int left = count(entry) - 1;
        if (left < 1) {
            table.set(place, 0);
            return NONE;
        }
        int first = EXACT * place;
        System.arraycopy(times, first + 1, times, first, EXACT - 1);
        if (left >= EXACT) {
            int before = times[first + EXACT - 2];
            times[first + EXACT - 1] = before + ((int) (entry >>> LAST_SHIFT) - before) / (left - EXACT + 1);
        }
        table.set(place, entry - (1L << COUNT_SHIFT));
        return time(times[first], now);
    }

    /// When the request after the present one was announced, or [#NONE].
    long nextAfterUse(long fingerprint, long now, long maxAge) {
        SetAssociativeTable table = sets;
        int place = table == null ? -1 : find(table, fingerprint, now, maxAge);
        return table == null || place < 0 || count(table.get(place)) < 2 ? NONE : time(times[EXACT * place + 1], now);
    }

    /// When the next request for a block was announced, or [#NONE].
    private long nextAnnounced(long fingerprint, long now, long maxAge) {
        SetAssociativeTable table = sets;
        int place = table == null ? -1 : find(table, fingerprint, now, maxAge);
        return table == null || place < 0 ? NONE : time(times[EXACT * place], now);
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
        return sets == null ? 0 : sets.bytes() + (long) times.length * Integer.BYTES;
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

    private static long sinceLast(long entry, long now) {
        return now - time((int) (entry >>> LAST_SHIFT), now);
    }

    /// A reading of which 32 bits are kept.
    private static long time(int kept, long now) {
        return now - Integer.toUnsignedLong((int) now - kept);
    }

    private static int count(long entry) {
        return (int) (entry >>> COUNT_SHIFT) & MAX_COUNT;
    }
}
