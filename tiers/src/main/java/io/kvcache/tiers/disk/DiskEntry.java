package io.kvcache.tiers.disk;

/// What the disk knows of one block or object. It is all that recovery needs to put the record back into the
/// tree.
///
/// A **tombstone** is an entry without bytes that says that earlier entries do not count any more: those of
/// its key, namespace and part, or all of its namespace.
///
/// @param keyHi first half of the key
/// @param keyLo second half of the key
/// @param parentHi first half of the parent's key; both halves 0 when there is no parent
/// @param parentLo second half of the parent's key
/// @param identity `namespace << 16 | part << 8 | flags`, the namespace by its number in the superblock's
///     table, the flags being [#OBJECT], [#TOMBSTONE] and [#NAMESPACE_TOMBSTONE]
/// @param depth blocks before this one
/// @param page where it begins in its region, in pages of 4 KiB
/// @param bytes of the block or object, rounding not included; 0 of a tombstone
/// @param checksum as in the record: CRC32C over the CRC32Cs of the 64 KiB chunks
/// @param engineHash low 64 bits of the engine's own hash, or 0
public record DiskEntry(
        long keyHi,
        long keyLo,
        long parentHi,
        long parentLo,
        int identity,
        int depth,
        int page,
        int bytes,
        int checksum,
        long engineHash) {

    /// Flag of an object.
    public static final int OBJECT = 1;

    /// Flag of a tombstone of one block or object.
    public static final int TOMBSTONE = 2;

    /// Flag of a tombstone of a whole namespace.
    public static final int NAMESPACE_TOMBSTONE = 4;

    /// Bits of the flags; above them lie part and namespace.
    static final int FLAG_BITS = 8;

    /// Namespaces that [#identity] can tell apart.
    static final int MAX_NAMESPACES = 1 << 16;

    /// A tombstone of what has this entry's key, namespace and part.
    public DiskEntry tombstone() {
        int buried = identity >>> FLAG_BITS << FLAG_BITS | TOMBSTONE;
        return new DiskEntry(keyHi, keyLo, 0, 0, buried, 0, 0, 0, 0, 0);
    }

    /// A tombstone of what has a key in a namespace, but for parts.
    public static DiskEntry tombstone(long keyHi, long keyLo, int namespace) {
        return new DiskEntry(keyHi, keyLo, 0, 0, namespace << 16 | TOMBSTONE, 0, 0, 0, 0, 0);
    }

    /// A tombstone of everything in a namespace.
    public static DiskEntry tombstone(int namespace) {
        return new DiskEntry(0, 0, 0, 0, namespace << 16 | NAMESPACE_TOMBSTONE, 0, 0, 0, 0, 0);
    }

    /// Whether it is an object, not a block.
    public boolean isObject() {
        return (identity & OBJECT) != 0;
    }

    /// Whether it is a tombstone, of either kind.
    public boolean isTombstone() {
        return (identity & (TOMBSTONE | NAMESPACE_TOMBSTONE)) != 0;
    }

    /// Whether it is a tombstone of a whole namespace.
    public boolean isNamespaceTombstone() {
        return (identity & NAMESPACE_TOMBSTONE) != 0;
    }

    /// Whether an earlier entry does not count beside this one: it has the same key, namespace and part, or
    /// this is a tombstone of its namespace.
    public boolean replaces(DiskEntry earlier) {
        if (isNamespaceTombstone()) {
            return namespace() == earlier.namespace();
        }
        return keyHi == earlier.keyHi
                && keyLo == earlier.keyLo
                && identity >>> FLAG_BITS == earlier.identity >>> FLAG_BITS;
    }

    /// Number of the namespace.
    public int namespace() {
        return identity >>> 16;
    }

    /// Pages that the bytes take.
    public int pages() {
        return (int) ((bytes + (long) DiskGeometry.PAGE_BYTES - 1) / DiskGeometry.PAGE_BYTES);
    }

    /// The same entry, beginning at another page.
    public DiskEntry withPage(int newPage) {
        return new DiskEntry(keyHi, keyLo, parentHi, parentLo, identity, depth, newPage, bytes, checksum, engineHash);
    }

    /// Whether it has bytes, or is a tombstone and has none.
    boolean isValid() {
        return isTombstone() ? bytes == 0 : bytes > 0;
    }

    /// Whether it lies where a block of a region of so many pages can lie.
    boolean fitsIn(int regionPages) {
        return isValid() && page >= WriteBatchHeader.HEAD_PAGES && page + (long) pages() < regionPages;
    }
}
