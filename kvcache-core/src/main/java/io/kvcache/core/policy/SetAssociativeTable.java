package io.kvcache.core.policy;

/// A table of sets of eight places, an entry of eight bytes in each. What is known of a block lies in the one
/// set that its fingerprint leads to, under a tag of it, which are the entry's lowest 16 bits; 0 is an empty
/// place. Which entry of a full set makes room is for the owner to say.
///
/// Two of ten thousand strangers are taken for a block that is here, if all places are full.
///
/// **Threads.** As its owner's.
final class SetAssociativeTable {

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

    /// What a block's entry ends with.
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
