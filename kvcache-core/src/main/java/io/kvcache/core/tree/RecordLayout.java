package io.kvcache.core.tree;

import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/// Layout of the fields of a record. Processes on the same host read this memory, so it is part of the contract.
///
/// One span of memory holds three tables, little-endian, in this order and each aligned to 64 bytes:
///
/// ```
/// heads    int32 × buckets        first record of each bucket's chain, -1 when empty
/// hot      64 bytes × records     one cache line: all that a look-up reads
/// cold     32 bytes × records     family links and slower tiers: read under the store's lock only
/// ```
///
/// There are seven buckets for four records, see [#buckets]. The bucket of a key is the high half of the
/// 128-bit product of its low word (unsigned) and the number of buckets.
///
/// A hot line:
///
/// ```
///  0  int64  key, high word        first 8 bytes of the block's digest, big-endian
///  8  int64  key, low word         the next 8
/// 16  int64  control               generation << 32 | state << 24 | pins
/// 24  int64  engine hash           low 64 bits of the engine's own hash of the block, 0 when it has none
/// 32  int32  host page             first page of the slot in host memory, -1 when not resident there
/// 36  int32  bytes                 of the block or object, as the engine sees it
/// 40  int32  next                  record after this one in its bucket's chain, -1 at the end
/// 44  int32  parent                record of the block before this one, -1 for a first block
/// 48  int32  depth                 blocks before this one
/// 52  int32  identity              namespace << 16 | marks
/// 56  int32  checksum              CRC32C over the CRC32Cs of the 64 KiB chunks
/// 60  int32  disk checksum         the same sum over the copy on disk, which may be of an earlier put
/// ```
///
/// A cold line: disk place (int64, -1 when not on disk), first child, next sibling, previous sibling, children in
/// host memory, children on disk (int32 each), and four bytes that are free; so no line lies across two of the
/// processor's. Sum: 64 + 32 + 7 for the buckets = 103 bytes a record, which with the 17 of a policy are 120.
public final class RecordLayout {

    public static final int HOT_BYTES = 64;
    public static final int COLD_BYTES = 32;
    static final int BUCKET_BYTES = Integer.BYTES;

    private static final int BUCKETS = 7;
    private static final int RECORDS = 4;

    /// Bytes of the bucket array for each record.
    public static final int INDEX_BYTES = BUCKET_BYTES * BUCKETS / RECORDS;

    static final long KEY_HI = 0;
    static final long KEY_LO = 8;
    static final long CONTROL = 16;
    static final long ENGINE_HASH = 24;
    static final long HOST_PAGE = 32;
    static final long BYTES = 36;
    static final long NEXT = 40;
    static final long PARENT = 44;
    static final long DEPTH = 48;
    static final long FLAGS = 52;
    static final long CHECKSUM = 56;
    static final long DISK_CHECKSUM = 60;

    static final long DISK_ADDRESS = 0;
    static final long FIRST_CHILD = 8;
    static final long NEXT_SIBLING = 12;
    static final long PREVIOUS_SIBLING = 16;
    static final long HOST_CHILDREN = 20;
    static final long DISK_CHILDREN = 24;

    static final ValueLayout.OfLong INT64 = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final ValueLayout.OfInt INT32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final VarHandle LONG = INT64.varHandle().withInvokeExactBehavior();
    static final VarHandle INT = INT32.varHandle().withInvokeExactBehavior();

    private RecordLayout() {}

    /// Bytes of the whole span for a pool of `records`.
    public static long spanBytes(int records) {
        return coldBase(records) + (long) records * COLD_BYTES;
    }

    /// Bytes of the part that processes on the same host read: heads and hot lines.
    public static long readerBytes(int records) {
        return coldBase(records);
    }

    /// Number of buckets for a number of records. A look-up that finds something reads
    /// 1 + 1 / (2 · buckets / records)
    /// records on average, one cache miss each: 1.29 here, 1.5 with a bucket a record, 1.25 with two, for
    /// which the budget of bytes has no room.
    static int buckets(int records) {
        return Math.toIntExact(Math.ceilDiv((long) records * BUCKETS, RECORDS));
    }

    static long hotBase(int records) {
        return lineUp((long) buckets(records) * BUCKET_BYTES);
    }

    static long coldBase(int records) {
        return hotBase(records) + (long) records * HOT_BYTES;
    }

    private static long lineUp(long bytes) {
        return (bytes + HOT_BYTES - 1) & -HOT_BYTES;
    }
}
