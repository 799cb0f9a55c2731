package io.kvcache.core.tree;

import static io.kvcache.core.tree.RecordLayout.INT32;
import static io.kvcache.core.tree.RecordLayout.LONG;

import io.kvcache.core.policy.RecordView;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;

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
/// The contents are not trusted to be an index. Look-ups end with any contents, and a link to a record outside the
/// pool gives [RecordHandle#UNSURE].
///
/// **Ownership.** The memory is its caller's, and stays mapped for as long as this is used.
///
/// **Threads.** Any.
public final class IndexReader {

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

    /// Returns the first page of a record's slot that was found in host memory, or that the store keeps for this
    /// reader.
    ///
    /// @param bytes that the block must have
    /// @return the page, or -1 when the record no longer holds it, holds another size, or is not a record of the
    ///     store
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

    /// Returns whether the record still holds the block that was found, so that all reads of it and of its slot
    /// until now are valid.
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
