package io.kvcache.core.policy;

import java.util.function.LongConsumer;

/// Last use and class of evicted blocks, eight bytes each.
///
/// In a full set of [SetAssociativeTable] a new block replaces the least recently used one. An entry is
///
/// ```
/// last use (38 bits, in steps of 16) | class (10 bits, plus 1) | tag of the fingerprint (16 bits)
/// ```
///
/// Two blocks with equal tags cost one false count. Readings wrap around after 2^42, so the caller passes the
/// current one; no entry lives nearly as long.
///
/// **Threads.** One writer, the holder of the store's lock.
public final class GhostCache {

    /// Nothing is known of the block.
    public static final long NONE = 0;

    private static final int CLASS_BITS = 10;
    private static final long CLASS_MASK = (1 << CLASS_BITS) - 1;
    private static final int STEP_BITS = 4;
    private static final int USE_SHIFT = SetAssociativeTable.TAG_BITS + CLASS_BITS;
    private static final long USE_MASK = -1L >>> USE_SHIFT;
    private static final int MAX_SETS = 1 << 26;

    /// Classes that are distinguished.
    static final int CLASSES = (1 << CLASS_BITS) - 1;

    private final SetAssociativeTable sets;

    /// @param blocks that are to find room, at least 1
    public GhostCache(long blocks) {
        long wanted = Math.min(MAX_SETS, Math.ceilDiv(Math.max(1, blocks), SetAssociativeTable.WAYS));
        sets = new SetAssociativeTable(Math.max(1, Long.SIZE - Long.numberOfLeadingZeros(wanted - 1)));
    }

    int capacity() {
        return sets.capacity();
    }

    /// Bytes of the table.
    public long bytes() {
        return sets.bytes();
    }

    /// Remembers a block that is not here.
    ///
    /// @param classId 0 to 1022
    /// @param lastUse at or before `now`
    /// @return the entry that had to go for it, or [#NONE]
    public long put(long fingerprint, int classId, long lastUse, long now) {
        assert classId >= 0 && classId < CLASSES : "class " + classId;
        int from = sets.firstSlot(fingerprint);
        int place = from;
        for (int i = from; i < from + SetAssociativeTable.WAYS && sets.get(place) != NONE; i++) {
            if (sets.get(i) == NONE || steps(sets.get(i), now) > steps(sets.get(place), now)) {
                place = i;
            }
        }
        long displaced = sets.get(place);
        long used = (lastUse >>> STEP_BITS) << USE_SHIFT;
        sets.set(place, used | ((classId + 1L) << SetAssociativeTable.TAG_BITS) | SetAssociativeTable.tag(fingerprint));
        return displaced;
    }

    /// Forgets a block and returns its entry, or [#NONE].
    public long remove(long fingerprint) {
        int place = sets.find(fingerprint);
        if (place < 0) {
            return NONE;
        }
        long entry = sets.get(place);
        sets.set(place, NONE);
        return entry;
    }

    /// A block's entry, or [#NONE].
    long find(long fingerprint) {
        int place = sets.find(fingerprint);
        return place < 0 ? NONE : sets.get(place);
    }

    /// Shows all entries, empty ones too.
    void forEach(LongConsumer each) {
        for (int place = 0; place < sets.capacity(); place++) {
            each.accept(sets.get(place));
        }
    }

    /// A reading as an entry keeps it.
    static long rounded(long lastUse) {
        return (lastUse >>> STEP_BITS) << STEP_BITS;
    }

    /// The class that an entry was put with.
    public static int classOf(long entry) {
        return (int) ((entry >>> SetAssociativeTable.TAG_BITS) & CLASS_MASK) - 1;
    }

    /// To within 16 readings, never later than it was.
    public static long lastUse(long entry, long now) {
        return ((now >>> STEP_BITS) - steps(entry, now)) << STEP_BITS;
    }

    /// Steps since the last use.
    private static long steps(long entry, long now) {
        return ((now >>> STEP_BITS) - (entry >>> USE_SHIFT)) & USE_MASK;
    }

    /// A table of sets of eight places, an entry of eight bytes in each. What is known of a block lies in the one
    /// set that its fingerprint leads to, under a tag of it, which are the entry's lowest 16 bits; 0 is an empty
    /// place. Which entry of a full set makes room is for the owner to say.
    ///
    /// Two of ten thousand strangers are taken for a block that is here, if all places are full.
    ///
    /// **Threads.** As its owner's.
    static final class SetAssociativeTable {

        static final int WAYS = 8;

        /// Bits of an entry that are the tag's.
        static final int TAG_BITS = 16;

        private static final long TAG_MASK = (1 << TAG_BITS) - 1;
        private static final long HASH_MULTIPLIER = 0x9E3779B97F4A7C15L;

        private final long[] entries;
        private final int setShift;

        /// @param bits of the number of sets, 1 to 26
        SetAssociativeTable(int bits) {
            entries = new long[WAYS << bits];
            setShift = Long.SIZE - bits;
        }

        /// Places of the table.
        int capacity() {
            return entries.length;
        }

        /// Bytes of the table.
        long bytes() {
            return (long) entries.length * Long.BYTES;
        }

        /// The first of the places that a block may have; the others follow it.
        int firstSlot(long fingerprint) {
            return (int) ((fingerprint * HASH_MULTIPLIER) >>> setShift) * WAYS;
        }

        /// The place of a block, or -1.
        int find(long fingerprint) {
            int from = firstSlot(fingerprint);
            long tag = tag(fingerprint);
            for (int i = from; i < from + WAYS; i++) {
                if (entries[i] != 0 && (entries[i] & TAG_MASK) == tag) {
                    return i;
                }
            }
            return -1;
        }

        /// Returns the tag at the end of a block's entry.
        static long tag(long fingerprint) {
            return ((fingerprint * HASH_MULTIPLIER) >>> TAG_BITS) & TAG_MASK;
        }

        /// The entry at a place.
        long get(int place) {
            return entries[place];
        }

        /// Changes the entry at a place.
        void set(int place, long entry) {
            entries[place] = entry;
        }
    }
}
