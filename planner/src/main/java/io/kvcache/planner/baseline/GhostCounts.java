package io.kvcache.planner.baseline;

/// A bounded memory of keys that are no longer resident: fingerprint to a positive count.
///
/// An open-addressed table with linear probing and backward-shift deletion, so that no tombstones
/// pile up. Every `put` takes the next seat of a ring. The table forgets the key that held this seat,
/// unless a later `put` gave that key another seat. So it holds at most one key for each seat, and
/// forgets keys in the order of their last `put`.
final class GhostCounts {

    /// Above this the table would need more than 2^30 places, the most that an array of a power of two can
    /// have.
    public static final int MAX_KEYS = 1 << 28;

    private static final long HASH_MULTIPLIER = 0x9E3779B97F4A7C15L;

    private final long[] keys;
    /// Counts; 0 marks an empty place.
    private final int[] counts;
    /// The ring seat that each place's key holds.
    private final int[] seats;

    private final long[] ring;
    private final int shift;
    private int nextSeat;
    private int size;

    /// @param capacity keys remembered, 1 to [#MAX_KEYS]
    public GhostCounts(int capacity) {
        if (capacity < 1 || capacity > MAX_KEYS) {
            throw new IllegalArgumentException("ghost capacity is " + capacity + ", must be from 1 to " + MAX_KEYS);
        }
        int bits = 33 - Integer.numberOfLeadingZeros(capacity);
        keys = new long[1 << bits];
        counts = new int[1 << bits];
        seats = new int[1 << bits];
        ring = new long[capacity];
        shift = Long.SIZE - bits;
    }

    int size() {
        return size;
    }

    /// Remembers a positive count for a key, in place of what was known of it.
    public void put(long key, int count) {
        assert count > 0 : "count " + count;
        freeSeat();
        int place = find(key);
        if (counts[place] == 0) {
            keys[place] = key;
            size++;
        }
        counts[place] = count;
        seats[place] = nextSeat;
        ring[nextSeat] = key;
        nextSeat = nextSeat + 1 == ring.length ? 0 : nextSeat + 1;
    }

    /// The count of a key, or 0 when it is not known.
    public int count(long key) {
        return counts[find(key)];
    }

    /// Forgets a key and returns its count, or 0 when it is not known.
    public int removeKey(long key) {
        int place = find(key);
        int count = counts[place];
        if (count != 0) {
            remove(place);
        }
        return count;
    }

    private void freeSeat() {
        int place = find(ring[nextSeat]);
        if (counts[place] != 0 && seats[place] == nextSeat) {
            remove(place);
        }
    }

    /// The key's place, or the empty one where it would go. There always is one: at most half of them are
    /// taken.
    private int find(long key) {
        int place = home(key);
        while (counts[place] != 0 && keys[place] != key) {
            place = after(place);
        }
        return place;
    }

    private void remove(int place) {
        int hole = place;
        for (int next = after(hole); counts[next] != 0; next = after(next)) {
            int distance = (next - home(keys[next])) & (keys.length - 1);
            if (distance >= ((next - hole) & (keys.length - 1))) {
                keys[hole] = keys[next];
                counts[hole] = counts[next];
                seats[hole] = seats[next];
                hole = next;
            }
        }
        counts[hole] = 0;
        size--;
    }

    private int home(long key) {
        return (int) ((key * HASH_MULTIPLIER) >>> shift);
    }

    private int after(int place) {
        return (place + 1) & (keys.length - 1);
    }
}
