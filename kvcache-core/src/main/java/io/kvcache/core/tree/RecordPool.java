package io.kvcache.core.tree;

import static io.kvcache.core.tree.RecordLayout.INT;
import static io.kvcache.core.tree.RecordLayout.INT32;
import static io.kvcache.core.tree.RecordLayout.INT64;
import static io.kvcache.core.tree.RecordLayout.LONG;

import io.kvcache.core.policy.RecordView;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;

/// A fixed number of records in off-heap memory; [RecordLayout] says where each field lies.
///
/// Records are numbered once and never move. A record's generation is raised when it is freed, so a reader that
/// stands on it then notices; of one that is FREE nothing may be believed, as it can be taken at any moment.
///
/// **Threads.** Fields are written under the store's lock. [#control], [#casControl], the key, the bucket
/// links and the host page may be read by anyone; what was read counts only if the generation is the same
/// before and after.
public final class RecordPool implements RecordView {

    /// A hundred GiB of records; the store's memory for blocks runs out long before.
    public static final int MAX_RECORDS = 1 << 30;

    /// Stands for a checksum that was not computed yet. Some bytes do have this sum: they are summed whenever asked.
    public static final int NO_CHECKSUM = 0;

    private final MemorySegment memory;
    private final int capacity;
    private final int buckets;
    private final long hotBase;
    private final long coldBase;
    private int fresh;
    private int freeHead = NONE;
    private int live;

    /// @param memory zeroed, at least [RecordLayout#spanBytes] of `capacity`
    public RecordPool(MemorySegment memory, int capacity) {
        this(capacity, requireSize(memory, capacity));
        for (int bucket = 0; bucket < buckets; bucket++) {
            memory.set(INT32, (long) bucket * RecordLayout.BUCKET_BYTES, NONE);
        }
    }

    private static MemorySegment requireSize(MemorySegment memory, int capacity) {
        if (capacity < 1 || capacity > MAX_RECORDS) {
            throw new IllegalArgumentException("records is " + capacity + "; a store takes 1 to " + MAX_RECORDS);
        }
        long needed = RecordLayout.spanBytes(capacity);
        if (memory.byteSize() < needed) {
            throw new IllegalArgumentException(
                    "memory for " + capacity + " records is " + memory.byteSize() + " bytes; needs " + needed);
        }
        return memory;
    }

    private RecordPool(int capacity, MemorySegment memory) {
        this.memory = memory;
        this.capacity = capacity;
        buckets = RecordLayout.buckets(capacity);
        hotBase = RecordLayout.hotBase(capacity);
        coldBase = RecordLayout.coldBase(capacity);
    }

    /// The records of a store of another process, whose bucket heads and hot lines are mapped here: nothing
    /// else of them may be asked for, and nothing be written.
    static RecordPool readOnly(MemorySegment memory, int capacity) {
        return new RecordPool(capacity, memory.asSlice(0, RecordLayout.readerBytes(capacity)));
    }

    /// Takes a record, state still FREE, or answers [#NONE] when all are taken.
    int allocate() {
        int record = freeHead;
        if (record != NONE) {
            freeHead = parent(record);
        } else if (fresh < capacity) {
            record = fresh++;
        } else {
            return NONE;
        }
        live++;
        VarHandle.storeStoreFence();
        return record;
    }

    /// Gives a record back, with the next generation.
    void free(int record) {
        int generation = ControlWord.generation(control(record));
        control(record, ControlWord.pack(generation + 1, ControlWord.FREE, 0));
        VarHandle.storeStoreFence();
        setInt(hot(record) + RecordLayout.PARENT, freeHead);
        freeHead = record;
        live--;
    }

    @Override
    public int capacity() {
        return capacity;
    }

    /// Records that are taken.
    public int live() {
        return live;
    }

    /// Records that were ever taken: all live ones have a lower number.
    public int highWaterMark() {
        return fresh;
    }

    /// The record as it is now.
    ///
    /// @return a [RecordHandle]
    public long handle(int record) {
        return RecordHandle.of(ControlWord.generation(control(record)), record);
    }

    public long control(int record) {
        return (long) LONG.getAcquire(memory, hot(record) + RecordLayout.CONTROL);
    }

    void control(int record, long word) {
        LONG.setRelease(memory, hot(record) + RecordLayout.CONTROL, word);
    }

    /// Replaces the control word if it is still `expected`.
    public boolean casControl(int record, long expected, long word) {
        return LONG.compareAndSet(memory, hot(record) + RecordLayout.CONTROL, expected, word);
    }

    /// Sets state and pins of a record that no other thread can pin: one that is RESERVED, FILLED or not indexed.
    public void state(int record, int state, int pins) {
        control(record, ControlWord.pack(ControlWord.generation(control(record)), state, pins));
    }

    /// Sets a record's state and adds `pins` to its pins; concurrent changes of the pins are kept.
    public void transition(int record, int state, int pins) {
        long before = control(record);
        while (!casControl(record, before, ControlWord.withState(before, state, pins))) {
            before = control(record);
        }
    }

    /// Changes a record's state and pins, and raises its generation: what its slot held is about to be
    /// overwritten.
    public void transitionNewGeneration(int record, int state, int pins) {
        long before = control(record);
        while (!casControl(record, before, ControlWord.withNewGeneration(before, state, pins))) {
            before = control(record);
        }
        VarHandle.storeStoreFence();
    }

    /// Pins a sealed record of this generation; any thread, without the lock.
    ///
    /// @throws IllegalStateException when the record has as many pins as fit its control word: tables leak
    public boolean pin(int record, int generation) {
        while (true) {
            long control = control(record);
            if (ControlWord.generation(control) != generation || ControlWord.state(control) != ControlWord.SEALED) {
                return false;
            }
            if (ControlWord.pins(control) == ControlWord.MAX_PINS) {
                throw new IllegalStateException("record " + record + " has " + ControlWord.MAX_PINS
                        + " pins and takes no more: tables are leaking");
            }
            if (casControl(record, control, control + 1)) {
                return true;
            }
        }
    }

    /// Takes a pin away; any thread, without the lock.
    ///
    /// @return whether that was the last pin on a deleted record, which may now be freed
    /// @throws IllegalStateException when the record has no pin
    public boolean unpin(int record) {
        while (true) {
            long control = control(record);
            if (ControlWord.pins(control) == 0) {
                throw new IllegalStateException("record " + record + " is released and holds no pin");
            }
            if (casControl(record, control, control - 1)) {
                return ControlWord.state(control) == ControlWord.DELETED && ControlWord.pins(control) == 1;
            }
        }
    }

    /// Claims an unpinned record in a state for eviction: it is EVICTING then, and no reader can pin it.
    public boolean claim(int record, int state) {
        long control = control(record);
        return ControlWord.state(control) == state
                && ControlWord.pins(control) == 0
                && casControl(record, control, control + ((long) (ControlWord.EVICTING - state) << 24));
    }

    /// Claims a sealed record without pins, to give its slot other bytes: it is REPLACING then, under the next
    /// generation, until [#finishOverwrite].
    public boolean claimForOverwrite(int record) {
        long control = control(record);
        boolean claimed = ControlWord.state(control) == ControlWord.SEALED
                && ControlWord.pins(control) == 0
                && casControl(record, control, ControlWord.withNewGeneration(control, ControlWord.REPLACING, 0));
        VarHandle.storeStoreFence();
        return claimed;
    }

    /// The slot of a record that [#claimForOverwrite] has claimed has its new bytes.
    public void finishOverwrite(int record, int bytes, int checksum) {
        bytes(record, bytes);
        checksum(record, checksum);
        state(record, ControlWord.SEALED, 0);
    }

    /// A record's hot line, for readers that take several fields of it.
    MemorySegment line(int record) {
        return memory.asSlice(hot(record), RecordLayout.HOT_BYTES);
    }

    int bucketOf(long lo) {
        return (int) Math.unsignedMultiplyHigh(lo, buckets);
    }

    /// First record of the bucket that a key with this low word belongs to; for checks under the lock.
    public int bucketHead(long lo) {
        return head(bucketOf(lo));
    }

    /// The record after this one in its bucket; for checks under the lock.
    public int bucketNext(int record) {
        return next(record);
    }

    int head(int bucket) {
        return (int) INT.getAcquire(memory, (long) bucket * RecordLayout.BUCKET_BYTES);
    }

    void head(int bucket, int record) {
        INT.setRelease(memory, (long) bucket * RecordLayout.BUCKET_BYTES, record);
    }

    int next(int record) {
        return (int) INT.getAcquire(memory, hot(record) + RecordLayout.NEXT);
    }

    void next(int record, int after) {
        INT.setRelease(memory, hot(record) + RecordLayout.NEXT, after);
    }

    public long keyHi(int record) {
        return getLong(hot(record) + RecordLayout.KEY_HI);
    }

    public long keyLo(int record) {
        return getLong(hot(record) + RecordLayout.KEY_LO);
    }

    void key(int record, long hi, long lo) {
        setLong(hot(record) + RecordLayout.KEY_HI, hi);
        setLong(hot(record) + RecordLayout.KEY_LO, lo);
    }

    @Override
    public long fingerprint(int record) {
        return keyLo(record);
    }

    public long engineHash(int record) {
        return getLong(hot(record) + RecordLayout.ENGINE_HASH);
    }

    void engineHash(int record, long hash) {
        setLong(hot(record) + RecordLayout.ENGINE_HASH, hash);
    }

    /// First page of the record's slot in host memory, or [#NONE].
    public int hostPage(int record) {
        return getInt(hot(record) + RecordLayout.HOST_PAGE);
    }

    public void hostPage(int record, int page) {
        setInt(hot(record) + RecordLayout.HOST_PAGE, page);
    }

    @Override
    public long bytes(int record) {
        return getInt(hot(record) + RecordLayout.BYTES);
    }

    void bytes(int record, int bytes) {
        setInt(hot(record) + RecordLayout.BYTES, bytes);
    }

    @Override
    public int parent(int record) {
        return getInt(hot(record) + RecordLayout.PARENT);
    }

    void parent(int record, int parent) {
        setInt(hot(record) + RecordLayout.PARENT, parent);
    }

    @Override
    public int depth(int record) {
        return getInt(hot(record) + RecordLayout.DEPTH);
    }

    void depth(int record, int depth) {
        setInt(hot(record) + RecordLayout.DEPTH, depth);
    }

    public int flags(int record) {
        return getInt(hot(record) + RecordLayout.FLAGS);
    }

    /// Depth and identity in one read: `identity << 32 | depth`.
    public long flagsAndDepth(int record) {
        return getLong(hot(record) + RecordLayout.DEPTH);
    }

    /// Says of a record that stood for an unknown block what it is.
    public void initialize(int record, NewRecordFields what) {
        depth(record, what.depth());
        flags(record, what.flags());
        bytes(record, what.bytes());
        engineHash(record, what.engineHash());
    }

    void flags(int record, int identity) {
        setInt(hot(record) + RecordLayout.FLAGS, identity);
    }

    public int checksum(int record) {
        return getInt(hot(record) + RecordLayout.CHECKSUM);
    }

    public void checksum(int record, int crc) {
        setInt(hot(record) + RecordLayout.CHECKSUM, crc);
    }

    /// Returns the address of the record's copy on disk, or [#NONE] when there is none. The disk that wrote it
    /// gives the number its meaning, but for its highest bits, see [DiskAddress].
    public long diskAddress(int record) {
        return getLong(cold(record) + RecordLayout.DISK_ADDRESS);
    }

    public void diskAddress(int record, long address) {
        setLong(cold(record) + RecordLayout.DISK_ADDRESS, address);
    }

    /// The same of a record that is not in host memory too, else [#NONE].
    public long exclusiveDiskAddress(int record) {
        long address = diskAddress(record);
        return hostPage(record) == NONE ? address : NONE;
    }

    /// Checksum of the copy on disk.
    public int diskChecksum(int record) {
        return getInt(hot(record) + RecordLayout.DISK_CHECKSUM);
    }

    public void diskChecksum(int record, int crc) {
        setInt(hot(record) + RecordLayout.DISK_CHECKSUM, crc);
    }

    /// Children that are on disk.
    public int diskChildren(int record) {
        return getInt(cold(record) + RecordLayout.DISK_CHILDREN);
    }

    void diskChildren(int record, int count) {
        setInt(cold(record) + RecordLayout.DISK_CHILDREN, count);
    }

    /// Sets or clears bits of the record's identity word.
    public void setFlags(int record, int bits, boolean set) {
        flags(record, set ? flags(record) | bits : flags(record) & ~bits);
    }

    /// Returns whether the record has a child of any kind.
    public boolean hasChildren(int record) {
        return firstChild(record) != NONE;
    }

    int firstChild(int record) {
        return getInt(cold(record) + RecordLayout.FIRST_CHILD);
    }

    void firstChild(int record, int child) {
        setInt(cold(record) + RecordLayout.FIRST_CHILD, child);
    }

    int nextSibling(int record) {
        return getInt(cold(record) + RecordLayout.NEXT_SIBLING);
    }

    void nextSibling(int record, int sibling) {
        setInt(cold(record) + RecordLayout.NEXT_SIBLING, sibling);
    }

    int previousSibling(int record) {
        return getInt(cold(record) + RecordLayout.PREVIOUS_SIBLING);
    }

    void previousSibling(int record, int sibling) {
        setInt(cold(record) + RecordLayout.PREVIOUS_SIBLING, sibling);
    }

    @Override
    public int residentChildren(int record) {
        return getInt(cold(record) + RecordLayout.HOST_CHILDREN);
    }

    void residentChildren(int record, int count) {
        setInt(cold(record) + RecordLayout.HOST_CHILDREN, count);
    }

    private long hot(int record) {
        return hotBase + (long) record * RecordLayout.HOT_BYTES;
    }

    private long cold(int record) {
        return coldBase + (long) record * RecordLayout.COLD_BYTES;
    }

    private long getLong(long offset) {
        return memory.get(INT64, offset);
    }

    private void setLong(long offset, long value) {
        memory.set(INT64, offset, value);
    }

    private int getInt(long offset) {
        return memory.get(INT32, offset);
    }

    private void setInt(long offset, int value) {
        memory.set(INT32, offset, value);
    }

    /// Initial values of the fields of a record.
    ///
    /// @param parent record of the block before, or -1
    /// @param depth blocks before this one
    /// @param flags `namespace << 16 | marks`
    /// @param bytes of the block or object
    /// @param engineHash low 64 bits of the engine's own hash, or 0
    /// @param hostPage first page of the slot
    public record NewRecordFields(
            long keyHi, long keyLo, int parent, int depth, int flags, int bytes, long engineHash, int hostPage) {}
}
