package io.kvcache.core.tree;

import static io.kvcache.core.tree.RecordLayout.INT;
import static io.kvcache.core.tree.RecordLayout.INT32;
import static io.kvcache.core.tree.RecordLayout.INT64;
import static io.kvcache.core.tree.RecordLayout.LONG;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.policy.RecordView;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.UUID;

/// The first page of a file that holds the records of a store, so that another process knows what it maps.
///
/// ```
///  0  8 bytes  "KVCINDEX"
///  8  uint32   version of this layout and of [RecordLayout]: 1
/// 12  uint32   0 not ready, 1 serving, 2 closed
/// 16  uint64   epoch: a random number, another one whenever a store is opened
/// 24  uint32   records
/// 28  uint32   buckets
/// 32  uint64   where the bucket heads begin, in bytes from the start of the file
/// 40  uint64   where the hot lines begin
/// 48  uint64   bytes of the file that the slots lie in
/// 56  uint32   bytes of a page: a slot begins at its record's page times this
/// 60  uint32   1 where blocks may be on a device, which the index does not show
/// 64  16 bytes proof: random, and nowhere else; who knows it can read this file
/// ```
///
/// Little-endian. The state is written last when the store opens, and first when it closes; a store that
/// was killed goes on saying that it serves.
///
/// @param epoch of the store
/// @param records that it takes
/// @param slotBytes of the other file
/// @param hasDevice whether blocks may be on a device too, or alone
/// @param proof by which a client shows that it may read the file
public record IndexHeader(long epoch, int records, long slotBytes, boolean hasDevice, UUID proof) {

    /// Bytes of the header; the bucket heads begin behind it.
    public static final int BYTES = Pages.BYTES;

    private static final long MAGIC = 0x5845444E4943564BL; // "KVCINDEX" in the order of bytes
    private static final int VERSION = 1;

    private static final long MAGIC_AT = 0;
    private static final long VERSION_AT = 8;
    private static final long STATE_AT = 12;
    private static final long EPOCH_AT = 16;
    private static final long RECORDS_AT = 24;
    private static final long BUCKETS_AT = 28;
    private static final long HEADS_AT = 32;
    private static final long LINES_AT = 40;
    private static final long SLOT_BYTES_AT = 48;
    private static final long PAGE_BYTES_AT = 56;
    private static final long DEVICE_AT = 60;
    private static final long PROOF_AT = 64;

    private static final int SERVING = 1;
    private static final int CLOSED = 2;

    /// Bytes of the file that a reader maps: header, bucket heads and hot lines.
    public long readerBytes() {
        return BYTES + RecordLayout.readerBytes(records);
    }

    /// Writes the header, and says that the store serves.
    ///
    /// @param page zeroed
    public void publish(MemorySegment page) {
        page.set(INT64, MAGIC_AT, MAGIC);
        page.set(INT32, VERSION_AT, VERSION);
        page.set(INT64, EPOCH_AT, epoch);
        page.set(INT32, RECORDS_AT, records);
        page.set(INT32, BUCKETS_AT, RecordLayout.buckets(records));
        page.set(INT64, HEADS_AT, BYTES);
        page.set(INT64, LINES_AT, BYTES + RecordLayout.hotBase(records));
        page.set(INT64, SLOT_BYTES_AT, slotBytes);
        page.set(INT32, PAGE_BYTES_AT, Pages.BYTES);
        page.set(INT32, DEVICE_AT, hasDevice ? 1 : 0);
        page.set(INT64, PROOF_AT, proof.getMostSignificantBits());
        page.set(INT64, PROOF_AT + Long.BYTES, proof.getLeastSignificantBits());
        INT.setRelease(page, STATE_AT, SERVING);
    }

    /// Says that the store serves no more.
    public static void close(MemorySegment page) {
        INT.setRelease(page, STATE_AT, CLOSED);
    }

    /// Returns whether the store serves, according to its header.
    static boolean isServing(MemorySegment page) {
        return (int) INT.getAcquire(page, STATE_AT) == SERVING;
    }

    /// Reads a header that another process has written.
    ///
    /// @throws IllegalArgumentException when it is none, or of a layout that is not known here
    public static IndexHeader read(MemorySegment page) {
        require("state", isServing(page) ? SERVING : 0, SERVING);
        require("magic", page.get(INT64, MAGIC_AT), MAGIC);
        require("version", page.get(INT32, VERSION_AT), VERSION);
        int records = page.get(INT32, RECORDS_AT);
        if (records < 1 || records > RecordPool.MAX_RECORDS) {
            throw new IllegalArgumentException(
                    "records of a shared index is " + records + "; allowed: 1 to " + RecordPool.MAX_RECORDS);
        }
        require("buckets", page.get(INT32, BUCKETS_AT), RecordLayout.buckets(records));
        require("heads", page.get(INT64, HEADS_AT), BYTES);
        require("lines", page.get(INT64, LINES_AT), BYTES + RecordLayout.hotBase(records));
        require("page bytes", page.get(INT32, PAGE_BYTES_AT), Pages.BYTES);
        long slotBytes = page.get(INT64, SLOT_BYTES_AT);
        if (slotBytes < 1 || slotBytes > Pages.MAX_BYTES) {
            throw new IllegalArgumentException(
                    "slot bytes of a shared index is " + slotBytes + "; allowed: 1 to " + Pages.MAX_BYTES);
        }
        UUID proof = new UUID(page.get(INT64, PROOF_AT), page.get(INT64, PROOF_AT + Long.BYTES));
        boolean hasDevice = page.get(INT32, DEVICE_AT) != 0;
        return new IndexHeader(page.get(INT64, EPOCH_AT), records, slotBytes, hasDevice, proof);
    }

    private static void require(String field, long found, long allowed) {
        if (found != allowed) {
            throw new IllegalArgumentException(field + " of a shared index is " + found + "; allowed: " + allowed);
        }
    }

    /// Looks blocks up in the index of a store of another process, whose records are mapped here read-only.
    ///
    /// It is the store's own index, so there is nothing to keep in step, and look-ups do here what they do
    /// there: [BlockTree] says why they need no lock, and [ControlWord] why bytes that were copied without a pin
    /// count if [#isUnchanged] says so afterwards. Both arguments are about memory and processors, not about whose
    /// thread it is.
    ///
    /// **How to read.** [#find] a block, ask for its [#page] and whatever else is needed, copy or compute, and
    /// ask whether the record still [holds][#isUnchanged] it. If not, what was read is void: a miss.
    ///
    /// The contents are not trusted to be an index. Look-ups end with any contents, and a link to a record outside
    /// the pool gives [RecordHandle#UNSURE].
    ///
    /// **Ownership.** The memory is its caller's, and stays mapped for as long as this is used.
    ///
    /// **Threads.** Any.
    public static final class IndexReader {

        /// Shift of the namespace in [RecordLayout#FLAGS].
        private static final int NAMESPACE_SHIFT = 16;

        private final IndexHeader header;
        private final MemorySegment page;
        private final RecordPool pool;
        private final BlockTree tree;

        /// @param mapped the file of the records from its start, at least [IndexHeader#readerBytes]
        public IndexReader(IndexHeader header, MemorySegment mapped) {
            this.header = header;
            page = mapped.asSlice(0, IndexHeader.BYTES);
            pool = RecordPool.readOnly(mapped.asSlice(IndexHeader.BYTES), header.records());
            tree = new BlockTree(pool);
        }

        /// Returns whether the store still serves, according to its header. A store that was killed still says so.
        public boolean isServing() {
            return IndexHeader.isServing(page);
        }

        /// Returns the header.
        public IndexHeader header() {
            return header;
        }

        /// Finds the record of a key that is in host memory.
        ///
        /// @return a [RecordHandle], [RecordHandle#MISS] or [RecordHandle#UNSURE]
        public long find(long hi, long lo) {
            try {
                return tree.find(hi, lo);
            } catch (IndexOutOfBoundsException noRecord) {
                return RecordHandle.UNSURE;
            }
        }

        /// Finds the record of a key that is in host memory, on disk, or on its way from there.
        ///
        /// @return a [RecordHandle], [RecordHandle#MISS] or [RecordHandle#UNSURE]
        public long findKnown(long hi, long lo) {
            try {
                return tree.findKnown(hi, lo);
            } catch (IndexOutOfBoundsException noRecord) {
                return RecordHandle.UNSURE;
            }
        }

        /// Returns the first page of a record's slot that was found in host memory, or that the store keeps for
        /// this reader.
        ///
        /// @param bytes that the block must have
        /// @return the page, or -1 when the record no longer holds it, holds another size, or is not a record
        ///     of the store
        public int page(long handle, long bytes) {
            if (!RecordHandle.isFound(handle) || RecordHandle.record(handle) >= header.records()) {
                return RecordView.NONE;
            }
            MemorySegment line = line(handle);
            boolean same = generation(line) == RecordHandle.generation(handle);
            int hostPage = line.get(INT32, RecordLayout.HOST_PAGE);
            boolean fits = line.get(INT32, RecordLayout.BYTES) == bytes;
            return same && fits && isUnchanged(handle) ? hostPage : RecordView.NONE;
        }

        private static int generation(MemorySegment line) {
            return ControlWord.generation((long) LONG.getAcquire(line, RecordLayout.CONTROL));
        }

        /// Blocks before this one in its chain; means something if the record [holds][#isUnchanged] it afterwards.
        public int depth(long handle) {
            return line(handle).get(INT32, RecordLayout.DEPTH);
        }

        /// The checksum that the block was sealed with; means something if the record [holds][#isUnchanged] it
        /// afterwards.
        public int checksum(long handle) {
            return line(handle).get(INT32, RecordLayout.CHECKSUM);
        }

        /// The number of the block's namespace; means something if the record [holds][#isUnchanged] it afterwards.
        public int namespace(long handle) {
            return line(handle).get(INT32, RecordLayout.FLAGS) >>> NAMESPACE_SHIFT;
        }

        /// Returns whether the record still holds the block that was found, so that all reads of it and of its
        /// slot until now are valid.
        public boolean isUnchanged(long handle) {
            VarHandle.loadLoadFence();
            long control = (long) LONG.getOpaque(line(handle), RecordLayout.CONTROL);
            return ControlWord.generation(control) == RecordHandle.generation(handle);
        }

        private MemorySegment line(long handle) {
            int record = RecordHandle.record(handle);
            if (record < 0 || record >= header.records()) {
                throw new IndexOutOfBoundsException("record " + record + " of a store of " + header.records());
            }
            return pool.line(record);
        }
    }
}
