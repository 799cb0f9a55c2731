package io.kvcache.core.policy;

import java.util.function.LongConsumer;

/// When evicted blocks were last used, and of which class they were: eight bytes each.
///
/// A table of sets of eight places. A block belongs to one set by its fingerprint, and the one of its
/// set that was used longest ago makes room for it. An entry is
///
/// ```
/// last use (40 bits, in steps of 16) | class (8 bits, plus 1) | tag of the fingerprint (16 bits)
/// ```
///
/// and 0 is an empty place. Two of ten thousand strangers are taken for one that is here; that costs a
/// false count.
///
/// **Threads.** One writer, the holder of the store's lock.
public final class Departed {

    /// Nothing is known of the block.
    public static final long NONE = 0;

    private static final int WAYS = 8;
    private static final int TAG_BITS = 16;
    private static final int CLASS_BITS = 8;
    private static final long TAG_MASK = (1 << TAG_BITS) - 1;
    private static final long CLASS_MASK = (1 << CLASS_BITS) - 1;
    private static final int STEP_BITS = 4;
    private static final int USE_SHIFT = TAG_BITS + CLASS_BITS;
    private static final long SPREAD = 0x9E3779B97F4A7C15L;
    private static final int MOST_SETS = 1 << 26;

    private final long[] entries;
    private final int setShift;

    /// @param blocks that are to find room, at least 1
    public Departed(long blocks) {
        long wanted = Math.min(MOST_SETS, Math.ceilDiv(Math.max(1, blocks), WAYS));
        int bits = Math.max(1, Long.SIZE - Long.numberOfLeadingZeros(wanted - 1));
        entries = new long[WAYS << bits];
        setShift = Long.SIZE - bits;
    }

    int capacity() {
        return entries.length;
    }

    /// Bytes of the table.
    public long bytes() {
        return (long) entries.length * Long.BYTES;
    }

    /// Remembers a block that is not here.
    ///
    /// @return the entry that had to go for it, or [#NONE]
    public long put(long fingerprint, int classId, long lastUse) {
        long spread = fingerprint * SPREAD;
        int from = set(spread);
        int place = from;
        for (int i = from; i < from + WAYS; i++) {
            if (entries[i] >>> USE_SHIFT < entries[place] >>> USE_SHIFT) {
                place = i;
            }
        }
        long displaced = entries[place];
        entries[place] = ((lastUse >>> STEP_BITS) << USE_SHIFT) | ((classId + 1L) << TAG_BITS) | tag(spread);
        return displaced;
    }

    /// Forgets a block and returns its entry, or [#NONE].
    public long take(long fingerprint) {
        int place = placeOf(fingerprint);
        if (place < 0) {
            return NONE;
        }
        long entry = entries[place];
        entries[place] = NONE;
        return entry;
    }

    /// A block's entry, or [#NONE].
    long find(long fingerprint) {
        int place = placeOf(fingerprint);
        return place < 0 ? NONE : entries[place];
    }

    private int placeOf(long fingerprint) {
        long spread = fingerprint * SPREAD;
        int from = set(spread);
        for (int i = from; i < from + WAYS; i++) {
            if (entries[i] != NONE && (entries[i] & TAG_MASK) == tag(spread)) {
                return i;
            }
        }
        return -1;
    }

    /// Shows all entries, empty ones too.
    void forEach(LongConsumer each) {
        for (long entry : entries) {
            each.accept(entry);
        }
    }

    /// A reading as an entry keeps it.
    static long rounded(long lastUse) {
        return (lastUse >>> STEP_BITS) << STEP_BITS;
    }

    /// The class that an entry was put with.
    public static int classOf(long entry) {
        return (int) ((entry >>> TAG_BITS) & CLASS_MASK) - 1;
    }

    /// To within 16 readings, never later than it was.
    static long lastUse(long entry) {
        return (entry >>> USE_SHIFT) << STEP_BITS;
    }

    private int set(long spread) {
        return (int) (spread >>> setShift) * WAYS;
    }

    private static long tag(long spread) {
        return (spread >>> TAG_BITS) & TAG_MASK;
    }
}
