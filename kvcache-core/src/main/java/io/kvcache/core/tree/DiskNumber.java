package io.kvcache.core.tree;

/// The disk that a place on disk belongs to: the place's four bits below the sign.
///
/// The other 59 bits are the disk's own.
public final class DiskNumber {

    /// Disks that a store can tell apart.
    public static final int MOST = 16;

    private static final int SHIFT = 59;
    private static final long OWN = (1L << SHIFT) - 1;

    private DiskNumber() {}

    /// A place of one disk as the store keeps it.
    public static long place(int disk, long own) {
        assert own >= 0 && own <= OWN : "place " + own;
        return (long) disk << SHIFT | own;
    }

    /// The disk of a place.
    public static int of(long place) {
        return (int) (place >>> SHIFT);
    }

    /// The place as the disk knows it.
    public static long own(long place) {
        return place & OWN;
    }
}
