package io.kvcache.tiers.disk;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.tier.TierBlock;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/// Metadata of one block or object on disk. It is all that recovery needs to put the record back into the tree.
///
/// A **tombstone** is an entry without bytes that says that earlier entries do not count any more: those of
/// its key, namespace and part, or all of its namespace.
///
/// On disk an entry takes 64 bytes, little-endian, its components in their order:
///
/// ```
///  0  int64 key high      8  int64 key low      16  int64 parent high   24  int64 parent low
/// 32  int32 identity     36  int32 depth        40  int32 page          44  int32 bytes
/// 48  int32 checksum     52  int32 descriptor   56  int64 engine hash
/// ```
///
/// The descriptor tells how the bytes lie: `codec | pages of the head << 8 | key << 16`, the number of a key being
/// reserved for encryption. 0 is what entries of before have: as they are.
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
/// @param layout how the bytes lie
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
        StoredLayout layout,
        long engineHash) {

    static final int ENTRY_BYTES = 64;

    static final int ENTRIES_PER_PAGE = DiskGeometry.PAGE_BYTES / ENTRY_BYTES;

    static final ValueLayout.OfLong INT64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final ValueLayout.OfInt INT32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /// Bytes of an entry that cannot be made out, which is never [#isValid].
    private static final int UNKNOWN_BYTES = -1;

    private static final int LAYOUT_HEAD_SHIFT = 8;

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

    /// Returns the entry of a block of the store.
    ///
    /// @param namespace its number in the log
    static DiskEntry of(TierBlock block, int namespace) {
        return new DiskEntry(
                block.keyHi(),
                block.keyLo(),
                block.parentHi(),
                block.parentLo(),
                namespace << 16 | (block.isObject() ? OBJECT : 0),
                block.depth(),
                0,
                block.bytes(),
                block.checksum(),
                StoredLayout.PLAIN,
                block.engineHash());
    }

    /// A tombstone of what has this entry's key, namespace and part.
    public DiskEntry tombstone() {
        int buried = identity >>> FLAG_BITS << FLAG_BITS | TOMBSTONE;
        return new DiskEntry(keyHi, keyLo, 0, 0, buried, 0, 0, 0, 0, StoredLayout.PLAIN, 0);
    }

    /// A tombstone of what has a key in a namespace, but for parts.
    public static DiskEntry tombstone(long keyHi, long keyLo, int namespace) {
        return new DiskEntry(keyHi, keyLo, 0, 0, namespace << 16 | TOMBSTONE, 0, 0, 0, 0, StoredLayout.PLAIN, 0);
    }

    /// A tombstone of everything in a namespace.
    public static DiskEntry tombstone(int namespace) {
        return new DiskEntry(0, 0, 0, 0, namespace << 16 | NAMESPACE_TOMBSTONE, 0, 0, 0, 0, StoredLayout.PLAIN, 0);
    }

    /// Returns whether it is an object, not a block.
    public boolean isObject() {
        return (identity & OBJECT) != 0;
    }

    /// Returns whether it is a tombstone, of either kind.
    public boolean isTombstone() {
        return (identity & (TOMBSTONE | NAMESPACE_TOMBSTONE)) != 0;
    }

    /// Returns whether it is a tombstone of a whole namespace.
    public boolean isNamespaceTombstone() {
        return (identity & NAMESPACE_TOMBSTONE) != 0;
    }

    /// Returns whether an earlier entry does not count beside this one: it has the same key, namespace and part,
    /// or this is a tombstone of its namespace.
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

    /// Pages that it takes.
    public int pages() {
        return layout.pages(bytes);
    }

    /// The same entry, beginning at another page.
    public DiskEntry withPage(int newPage) {
        return new DiskEntry(
                keyHi, keyLo, parentHi, parentLo, identity, depth, newPage, bytes, checksum, layout, engineHash);
    }

    /// The same entry, lying otherwise.
    DiskEntry withLayout(StoredLayout newLayout) {
        return new DiskEntry(
                keyHi, keyLo, parentHi, parentLo, identity, depth, page, bytes, checksum, newLayout, engineHash);
    }

    /// Returns whether it has bytes, or is a tombstone and has none. A coded block takes no more than a
    /// plain one: it is read into the memory of that.
    boolean isValid() {
        boolean fits = !layout.isCoded() || pages() <= StoredLayout.PLAIN.pages(bytes);
        return isTombstone() ? bytes == 0 : bytes > 0 && fits;
    }

    /// Returns whether it lies where a block can lie in a region of the given number of pages.
    boolean fitsIn(int regionPages) {
        return isValid() && page >= WriteBatchHeader.HEAD_PAGES && page + (long) pages() < regionPages;
    }

    /// Writes it as a row of a table.
    void write(MemorySegment table, int index) {
        long at = (long) index * ENTRY_BYTES;
        table.set(INT64, at, keyHi());
        table.set(INT64, at + 8, keyLo());
        table.set(INT64, at + 16, parentHi());
        table.set(INT64, at + 24, parentLo());
        table.set(INT32, at + 32, identity());
        table.set(INT32, at + 36, depth());
        table.set(INT32, at + 40, page());
        table.set(INT32, at + 44, bytes());
        table.set(INT32, at + 48, checksum());
        table.set(INT32, at + 52, layout().codec() | layout().headPages() << LAYOUT_HEAD_SHIFT);
        table.set(INT64, at + 56, engineHash());
    }

    /// Reads a row of a table.
    static DiskEntry read(MemorySegment table, int index) {
        long at = (long) index * ENTRY_BYTES;
        StoredLayout layout = layout(table.get(INT32, at + 52));
        return new DiskEntry(
                table.get(INT64, at),
                table.get(INT64, at + 8),
                table.get(INT64, at + 16),
                table.get(INT64, at + 24),
                table.get(INT32, at + 32),
                table.get(INT32, at + 36),
                table.get(INT32, at + 40),
                layout == null ? UNKNOWN_BYTES : table.get(INT32, at + 44),
                table.get(INT32, at + 48),
                layout == null ? StoredLayout.PLAIN : layout,
                table.get(INT64, at + 56));
    }

    /// @return null for a descriptor of a later version: how far such an entry reaches is unknown
    private static @Nullable StoredLayout layout(int descriptor) {
        int codec = descriptor & 0xFF;
        int headPages = descriptor >>> LAYOUT_HEAD_SHIFT & StoredLayout.MAX_HEAD_PAGES;
        boolean known = descriptor >>> 16 == 0 && StoredLayout.isValid(codec, headPages);
        return known ? new StoredLayout(codec, headPages) : null;
    }
}
