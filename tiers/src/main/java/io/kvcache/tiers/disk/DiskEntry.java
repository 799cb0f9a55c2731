package io.kvcache.tiers.disk;

/// What the disk knows of one block or object. It is all that recovery needs to put the record back into the
/// tree.
///
/// @param keyHi first half of the key
/// @param keyLo second half of the key
/// @param parentHi first half of the parent's key; both halves 0 when there is no parent
/// @param parentLo second half of the parent's key
/// @param identity `namespace << 16 | part << 8 | flags`, the namespace by its number in the superblock's
///     table
/// @param depth blocks before this one
/// @param page where it begins in its region, in pages of 4 KiB
/// @param bytes of the block or object, rounding not included
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

    /// Namespaces that [#identity] can tell apart.
    static final int MAX_NAMESPACES = 1 << 16;

    /// Number of the namespace.
    public int namespace() {
        return identity >>> 16;
    }

    /// Pages that the bytes take.
    public int pages() {
        return (int) ((bytes + (long) Geometry.PAGE_BYTES - 1) / Geometry.PAGE_BYTES);
    }

    /// The same entry, beginning at another page.
    public DiskEntry at(int newPage) {
        return new DiskEntry(keyHi, keyLo, parentHi, parentLo, identity, depth, newPage, bytes, checksum, engineHash);
    }

    /// Whether it lies where a block of a region of so many pages can lie.
    boolean fits(int regionPages) {
        return bytes > 0 && page >= Group.HEAD_PAGES && page + (long) pages() < regionPages;
    }
}
