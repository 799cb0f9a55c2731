package io.kvcache.core.tree;

/// The disk that a place on disk belongs to: the place's four bits below the sign.
///
/// The other 59 bits are the disk's own.
public final class DiskAddress {

    /// Most disks of a store.
    public static final int MAX_DISKS = 16;

    private static final int SHIFT = 59;
    private static final long LOCAL_MASK = (1L << SHIFT) - 1;

    private DiskAddress() {}

    /// A place of one disk as the store keeps it.
    public static long of(int disk, long local) {
        assert local >= 0 && local <= LOCAL_MASK : "place " + local;
        return (long) disk << SHIFT | local;
    }

    /// The disk of a place.
    public static int diskOf(long address) {
        return (int) (address >>> SHIFT);
    }

    /// The place as the disk knows it.
    public static long localAddress(long address) {
        return address & LOCAL_MASK;
    }
}
