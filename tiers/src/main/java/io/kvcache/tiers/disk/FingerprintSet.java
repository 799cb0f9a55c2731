package io.kvcache.tiers.disk;

/// A set of entries, each known by 64 bits of its key, namespace and part: of 16 million, the chance that any
/// two are taken for one is one in 130,000. It serves counts and nothing else.
final class FingerprintSet {

    private static final int INITIAL_SLOTS = 1 << 12;

    /// Slots to be searched stay few while at most half are taken.
    private static final int SLOTS_PER_FINGERPRINT = 2;

    private long[] slots = new long[INITIAL_SLOTS];
    private int size;

    /// Returns the fingerprint of an entry; never 0.
    static long of(DiskEntry entry) {
        return fingerprint(entry.keyHi(), entry.keyLo(), entry.identity());
    }

    /// Returns the fingerprint of an entry's parent.
    static long ofParent(DiskEntry entry) {
        return fingerprint(entry.parentHi(), entry.parentLo(), entry.identity());
    }

    /// Halves of SplittableRandom's mixing, after which every bit depends on every other.
    private static long fingerprint(long hi, long lo, int identity) {
        long mixed = hi + Long.rotateLeft(lo, 31) * 0x9E37_79B9_7F4A_7C15L + (identity >>> DiskEntry.FLAG_BITS);
        mixed = (mixed ^ mixed >>> 30) * 0xBF58_476D_1CE4_E5B9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94D0_49BB_1331_11EBL;
        mixed ^= mixed >>> 31;
        return mixed == 0 ? 1 : mixed;
    }

    /// Adds a print.
    ///
    /// @return whether it is new
    boolean add(long fingerprint) {
        int slot = find(fingerprint);
        if (slots[slot] == fingerprint) {
            return false;
        }
        slots[slot] = fingerprint;
        size++;
        if (size * SLOTS_PER_FINGERPRINT > slots.length) {
            grow();
        }
        return true;
    }

    boolean contains(long fingerprint) {
        return slots[find(fingerprint)] == fingerprint;
    }

    /// Returns the slot of a fingerprint, or the free one where it would go.
    private int find(long fingerprint) {
        int slot = (int) fingerprint & slots.length - 1;
        while (slots[slot] != 0 && slots[slot] != fingerprint) {
            slot = slot + 1 & slots.length - 1;
        }
        return slot;
    }

    private void grow() {
        long[] old = slots;
        slots = new long[old.length * SLOTS_PER_FINGERPRINT];
        for (long fingerprint : old) {
            if (fingerprint != 0) {
                slots[find(fingerprint)] = fingerprint;
            }
        }
    }
}
