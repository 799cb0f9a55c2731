package io.kvcache.core.policy;

import io.kvcache.core.policy.GhostCache.SetAssociativeTable;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// Blocks that announced requests will use, with the times at which these requests were announced. One policy
/// instance keeps one.
///
/// A request that uses a block fulfils one announcement of it, the earliest. All times are kept: an estimate for
/// some of them made a longer queue find fewer blocks than a shorter one. They lie in a pool that grows up to
/// [#MAX_TIMES]; what is announced beyond that is not kept, as it is wanted last. A block's announcements are
/// forgotten when the last one is too long ago. So announcing a block many times does not exempt it for as many
/// uses.
///
/// In a full set of [GhostCache.SetAssociativeTable] a new block replaces the one with the oldest last
/// announcement. An entry is
///
/// ```
/// place of its last time in the pool (24 bits) | of its first (24) | tag of the fingerprint (16)
/// ```
///
/// Times have 32 bits and wrap around after four billion uses. Nothing is kept before the first hint.
///
/// **Threads.** One writer, the holder of the store's lock.
final class AnnouncedRequests {

    /// Uses after which an announcement is given up: a thousand waiting requests of 500 blocks.
    private static final int MIN_HORIZON = 1 << 19;

    private static final int HORIZON_IN_MEMORY = 4;

    /// No more requests are known to come.
    static final long NONE = -1;

    /// Number of sets, as a power of two: enough for a hundred thousand blocks, in one MiB.
    private static final int SET_BITS = 14;

    /// Times that are kept of all blocks, 8 bytes each.
    static final int MAX_TIMES = 1 << 20;

    private static final int MIN_TIMES = 1 << 10;

    private static final int FIRST_SHIFT = SetAssociativeTable.TAG_BITS;
    private static final int LAST_SHIFT = 40;
    private static final int PLACE_MASK = 0xFFFFFF;

    private @Nullable SetAssociativeTable sets;

    /// The pool; place 0 stands for none.
    private int[] times = new int[0];

    /// The next time of the same block, or the next free place.
    private int[] next = new int[0];

    private int free;

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
        if (free == 0 && !grow()) {
            return;
        }
        int time = free;
        free = next[time];
        times[time] = (int) now;
        next[time] = 0;
        int place = find(table, fingerprint, now, maxAge);
        if (place < 0) {
            place = slotFor(table, fingerprint, now);
            forget(table, place);
            table.set(place, entry(time, time, SetAssociativeTable.tag(fingerprint)));
        } else {
            long entry = table.get(place);
            next[last(entry)] = time;
            table.set(place, entry(first(entry), time, SetAssociativeTable.tag(fingerprint)));
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
        long entry = table.get(place);
        int first = first(entry);
        int second = next[first];
        next[first] = free;
        free = first;
        table.set(place, second == 0 ? 0 : entry(second, last(entry), SetAssociativeTable.tag(fingerprint)));
        return second == 0 ? NONE : time(times[second], now);
    }

    /// When the request after the present one was announced, or [#NONE].
    long nextAfterUse(long fingerprint, long now, long maxAge) {
        SetAssociativeTable table = sets;
        int place = table == null ? -1 : find(table, fingerprint, now, maxAge);
        int second = table == null || place < 0 ? 0 : next[first(table.get(place))];
        return second == 0 ? NONE : time(times[second], now);
    }

    /// When the next request for a block was announced, or [#NONE].
    private long nextAnnounced(long fingerprint, long now, long maxAge) {
        SetAssociativeTable table = sets;
        int place = table == null ? -1 : find(table, fingerprint, now, maxAge);
        return table == null || place < 0 ? NONE : time(times[first(table.get(place))], now);
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

    /// Number of uses after which an announcement expires, by the number of resident blocks.
    static long horizon(int size) {
        return Math.max(MIN_HORIZON, (long) HORIZON_IN_MEMORY * size);
    }

    private static long expectedState(long word, long announced, int status) {
        return announced == NONE
                ? ImportanceWord.withStatus(word, status)
                : ImportanceWord.withStamp(ImportanceWord.withStatus(word, ImportanceWord.EXPECTED), announced);
    }

    long bytes() {
        return sets == null ? 0 : sets.bytes() + 2L * times.length * Integer.BYTES;
    }

    /// The place of a block that is expected still, or -1.
    private int find(SetAssociativeTable table, long fingerprint, long now, long maxAge) {
        int place = table.find(fingerprint);
        while (place >= 0 && sinceLast(table.get(place), now) > maxAge) {
            forget(table, place);
            place = table.find(fingerprint);
        }
        return place;
    }

    private int slotFor(SetAssociativeTable table, long fingerprint, long now) {
        int from = table.firstSlot(fingerprint);
        int place = from;
        for (int i = from; i < from + SetAssociativeTable.WAYS && table.get(place) != 0; i++) {
            if (table.get(i) == 0 || sinceLast(table.get(i), now) > sinceLast(table.get(place), now)) {
                place = i;
            }
        }
        return place;
    }

    /// Empties a place of the table, and gives its times back.
    private void forget(SetAssociativeTable table, int place) {
        long entry = table.get(place);
        if (entry != 0) {
            next[last(entry)] = free;
            free = first(entry);
            table.set(place, 0);
        }
    }

    /// Makes the pool twice as large, and returns whether that was possible.
    private boolean grow() {
        int before = times.length;
        if (before >= MAX_TIMES) {
            return false;
        }
        int after = Math.max(MIN_TIMES, 2 * before);
        times = Arrays.copyOf(times, after);
        next = Arrays.copyOf(next, after);
        for (int place = after - 1; place >= Math.max(1, before); place--) {
            next[place] = free;
            free = place;
        }
        return true;
    }

    private long sinceLast(long entry, long now) {
        return now - time(times[last(entry)], now);
    }

    /// A reading of which 32 bits are kept.
    private static long time(int kept, long now) {
        return now - Integer.toUnsignedLong((int) now - kept);
    }

    private static long entry(int first, int last, long tag) {
        return (long) last << LAST_SHIFT | (long) first << FIRST_SHIFT | tag;
    }

    private static int first(long entry) {
        return (int) (entry >>> FIRST_SHIFT) & PLACE_MASK;
    }

    private static int last(long entry) {
        return (int) (entry >>> LAST_SHIFT) & PLACE_MASK;
    }
}
