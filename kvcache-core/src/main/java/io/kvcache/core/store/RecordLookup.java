package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.SegmentVisitor;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PartGroup;
import io.kvcache.core.memory.Pages;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.NamespaceRegistry.EntryGroup;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongConsumer;

/// The read side of a store: what is here, and holding it there. Takes no lock, but for the rare cases that
/// say so.
///
/// A block is found by a chain of its own namespace alone, whatever keys the chain names, and only where it lies as
/// deep in the store as the chain says: keys that a caller lists need not be those of one chain.
///
/// **Threads.** Any.
public final class RecordLookup {

    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final NamespaceRegistry namespaceRegistry;
    private final DiskUsageTable disks;
    private final RecordStates recordStates;
    private final WriteBackQueue writeBackQueue;
    private final ReentrantLock lock;
    private final AccessBuffer uses = new AccessBuffer();
    /// Whether a use of a block was one of each block above it last time, for the policy or for admission; written
    /// under the lock, read by anyone.
    private boolean countsPaths = true;

    RecordLookup(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        slabs = store.slabs;
        namespaceRegistry = store.namespaceRegistry;
        disks = store.disks;
        recordStates = store.recordStates;
        writeBackQueue = store.writeBackQueue;
        lock = store.lock;
    }

    /// The entry of a registered namespace.
    ///
    /// @throws IllegalArgumentException when it was not registered
    public NamespaceEntry require(Namespace namespace) {
        return namespaceRegistry.require(namespace);
    }

    /// The records, by number.
    public RecordPool records() {
        return pool;
    }

    /// All host memory, in which [#visit] says what lies where.
    public MemorySegment memory() {
        return slabs.memory();
    }

    /// Shows where a range of an object lies that the caller has pinned or reserved, as for the methods that follow:
    /// its slots do not change, nor do the slabs that they lie in.
    ///
    /// @param offset in its stored form: value, then key
    public void visit(int record, long offset, long bytes, SegmentVisitor each) {
        visitRange(record, offset, bytes, (from, length, _) -> each.visitSegment(slabs.memory(), from, length));
    }

    /// Copies a range of an object to the start of `target`.
    public void copyTo(int record, long offset, long bytes, MemorySegment target) {
        visitRange(
                record,
                offset,
                bytes,
                (from, length, at) -> MemorySegment.copy(slabs.memory(), from, target, at, length));
    }

    /// Fills a range of an object from `source`, which has its size.
    public void copyFrom(int record, long offset, MemorySegment source) {
        visitRange(
                record,
                offset,
                source.byteSize(),
                (from, length, at) -> MemorySegment.copy(source, at, slabs.memory(), from, length));
    }

    /// Returns whether an object has these bytes from `offset` on.
    public boolean hasBytes(int record, long offset, byte[] wanted) {
        boolean[] equal = {true};
        visitRange(
                record,
                offset,
                wanted.length,
                (from, length, at) -> equal[0] &= hasBytes(slabs.memory(), from, wanted, (int) at, (int) length));
        return equal[0];
    }

    /// Eight bytes at a time: keys are short, and a segment over the array would have to be made for each.
    private static boolean hasBytes(MemorySegment memory, long from, byte[] wanted, int at, int length) {
        int i = 0;
        while (i + Long.BYTES <= length
                && memory.get(ValueLayout.JAVA_LONG_UNALIGNED, from + i) == (long) LONG.get(wanted, at + i)) {
            i += Long.BYTES;
        }
        while (i < length && memory.get(ValueLayout.JAVA_BYTE, from + i) == wanted[at + i]) {
            i++;
        }
        return i == length;
    }

    /// Returns whether two objects of one size have the same bytes.
    boolean contentEquals(int one, int another) {
        boolean[] same = {true};
        visitRange(one, 0, pool.bytes(one), (from, length, at) -> {
            visitRange(
                    another,
                    at,
                    length,
                    (start, part, within) -> same[0] = same[0] && isEqual(from + within, start, part));
        });
        return same[0];
    }

    private boolean isEqual(long from, long start, long bytes) {
        MemorySegment memory = slabs.memory();
        return MemorySegment.mismatch(memory, from, from + bytes, memory, start, start + bytes) < 0;
    }

    /// The slots of a record in order, the last of them cut.
    ///
    /// @param bytes of all of them together, perhaps up to the end of the last page
    List<MemorySegment> segments(int record, long bytes) {
        List<MemorySegment> pieces = new ArrayList<>();
        visitSlots(
                record, 0, bytes, (from, length, _) -> pieces.add(slabs.memory().asSlice(from, length)));
        return pieces;
    }

    /// A piece of a range: where it lies in host memory, and its place in the range.
    private interface PieceVisitor {
        void visit(long from, long length, long at);
    }

    private void visitRange(int record, long offset, long bytes, PieceVisitor each) {
        Objects.checkFromIndexSize(offset, bytes, pool.bytes(record));
        visitSlots(record, offset, bytes, each);
    }

    private void visitSlots(int record, long offset, long bytes, PieceVisitor each) {
        long skip = offset;
        long done = 0;
        for (int page = pool.hostPage(record); done < bytes && page != SlabPool.NONE; page = slabs.next(page)) {
            long slotBytes = slabs.slotBytes(page);
            if (skip < slotBytes) {
                long part = Math.min(bytes - done, slotBytes - skip);
                each.visit(Pages.offset(page) + skip, part, done);
                done += part;
                skip = 0;
            } else {
                skip -= slotBytes;
            }
        }
        assert done == bytes : "object of " + (offset + bytes) + " bytes lacks " + (bytes - done);
    }

    /// How many leading blocks of the chain are here, looking at `limit` at most. Allocates nothing.
    ///
    /// What is known of a chain is a prefix of it, so this is a binary search. First and last block are asked
    /// before anything else: most prompts are either new or here as a whole.
    public int match(BlockChain chain, int limit) {
        int namespace = namespaceRegistry.idOf(chain.namespace());
        if (limit == 0 || !contains(chain, 0, namespace)) {
            return 0;
        }
        if (contains(chain, limit - 1, namespace)) {
            return limit;
        }
        int known = 0;
        int unknown = limit - 1;
        while (unknown - known > 1) {
            int middle = (known + unknown) >>> 1;
            if (contains(chain, middle, namespace)) {
                known = middle;
            } else {
                unknown = middle;
            }
        }
        return known + 1;
    }

    /// How many leading blocks of the chain are here or on disk, looking from block `resident` on, of which
    /// it is known that all before it are here.
    public int matchKnown(BlockChain chain, int resident) {
        int known = resident - 1;
        int unknown = chain.length();
        int namespace = namespaceRegistry.idOf(chain.namespace());
        if (known + 1 == unknown || !isKnown(chain, known + 1, namespace)) {
            return known + 1;
        }
        if (isKnown(chain, unknown - 1, namespace)) {
            return unknown;
        }
        known++;
        unknown--;
        while (unknown - known > 1) {
            int middle = (known + unknown) >>> 1;
            if (isKnown(chain, middle, namespace)) {
                known = middle;
            } else {
                unknown = middle;
            }
        }
        return known + 1;
    }

    /// Most blocks of a chain of which all is here that a match needs: windows and states too.
    ///
    /// @param blocks leading blocks that are here
    /// @param onDisk whether what is on disk alone counts
    public int matchEntries(NamespaceEntry entry, BlockChain chain, int blocks, boolean onDisk) {
        List<EntryGroup> groups = entry.groups();
        return groups.isEmpty()
                ? blocks
                : PartGroup.matchEnd(
                        chain.namespace().groups(),
                        blocks,
                        (group, number) -> hasEntry(groups.get(group), chain, number, onDisk));
    }

    private boolean hasEntry(EntryGroup group, BlockChain chain, int number, boolean onDisk) {
        int index = (number + 1) * group.group().every() - 1;
        long hi = group.keyHi(chain.keyHi(index));
        long lo = group.keyLo(chain.keyLo(index));
        return isBlockAt(
                onDisk ? findKnown(hi, lo) : find(hi, lo), 0, group.entry().id());
    }

    /// Returns how many of the blocks `[from, to)` of a chain a device has too, or alone. Looks at each: they are
    /// anywhere.
    public int countOnDevice(BlockChain chain, int from, int to) {
        int found = 0;
        for (int index = from; index < to && disks.onDevice() > 0; index++) {
            long handle = findKnown(chain.keyHi(index), chain.keyLo(index));
            boolean there = RecordHandle.isFound(handle)
                    && RecordFlags.has(pool.flags(RecordHandle.record(handle)), RecordFlags.ON_DEVICE);
            found += there ? 1 : 0;
        }
        return found;
    }

    private boolean isKnown(BlockChain chain, int index, int namespace) {
        return isBlockAt(findKnown(chain.keyHi(index), chain.keyLo(index)), index, namespace);
    }

    /// Returns whether a handle names a block of this namespace at this depth. Unless the caller pins it, the block
    /// may be evicted at any moment.
    private boolean isBlockAt(long handle, int index, int namespace) {
        if (!RecordHandle.isFound(handle)) {
            return false;
        }
        long found = pool.flagsAndDepth(RecordHandle.record(handle));
        return (int) found == index && RecordFlags.isBlockOf((int) (found >>> 32), namespace);
    }

    /// Returns whether a handle names a block of this namespace, which may be evicted likewise.
    private boolean isBlockOf(long handle, int namespace) {
        return RecordHandle.isFound(handle)
                && RecordFlags.isBlockOf(pool.flags(RecordHandle.record(handle)), namespace);
    }

    /// Finds the record of a key that is here or on disk.
    ///
    /// @return a [RecordHandle] or [RecordHandle#MISS]
    public long findKnown(long hi, long lo) {
        long found = tree.findKnown(hi, lo);
        if (found != RecordHandle.UNSURE) {
            return found;
        }
        lock.lock();
        try {
            return tree.findKnown(hi, lo);
        } finally {
            lock.unlock();
        }
    }

    private boolean contains(BlockChain chain, int index, int namespace) {
        return isBlockAt(find(chain.keyHi(index), chain.keyLo(index)), index, namespace);
    }

    /// Finds a sealed record by its key; under the lock when records move too fast under its eyes.
    ///
    /// @return a [RecordHandle] or [RecordHandle#MISS]
    public long find(long hi, long lo) {
        long found = tree.find(hi, lo);
        return found == RecordHandle.UNSURE ? findLocked(hi, lo) : found;
    }

    private long findLocked(long hi, long lo) {
        lock.lock();
        try {
            return tree.find(hi, lo);
        } finally {
            lock.unlock();
        }
    }

    /// Pins the deepest block of the chain that is here, and so all above it, and touches them.
    ///
    /// @return the record's [RecordHandle], or [RecordHandle#MISS] when not even the first block is here
    public long pinDeepest(BlockChain chain) {
        while (true) {
            int blocks = match(chain, chain.length());
            if (blocks == 0) {
                return RecordHandle.MISS;
            }
            long handle = find(chain.keyHi(blocks - 1), chain.keyLo(blocks - 1));
            if (RecordHandle.isFound(handle) && pin(handle)) {
                return isAtDepth(handle, blocks - 1, namespaceRegistry.idOf(chain.namespace()))
                        ? handle
                        : RecordHandle.MISS;
            }
        }
    }

    /// Returns whether a pinned block has the caller's namespace and the depth that the caller's chain gives it;
    /// unpins it when not. A chain of engine keys may begin in the middle of another: its keys are here,
    /// but the blocks above them are not its own.
    private boolean isAtDepth(long handle, int index, int namespace) {
        boolean inPlace = isBlockAt(handle, index, namespace);
        if (!inPlace) {
            unpin(RecordHandle.record(handle));
        }
        return inPlace;
    }

    /// Whether a block of a namespace is here or on disk.
    public boolean containsBlock(NamespaceEntry of, BlockKey key) {
        return isBlockOf(findKnown(key.hi(), key.lo()), of.id());
    }

    /// Whether a record that the caller has pinned is an object of a namespace.
    public boolean isObjectOf(NamespaceEntry of, int record) {
        return RecordFlags.isObjectOf(pool.flags(record), of.id());
    }

    /// Finds, pins and touches one record.
    ///
    /// @return its [RecordHandle], or [RecordHandle#MISS]
    public long pinKey(long hi, long lo) {
        long handle = peekKey(hi, lo);
        if (RecordHandle.isFound(handle)) {
            touch(handle);
        }
        return handle;
    }

    /// Finds and pins one record, without counting a use.
    ///
    /// @return its [RecordHandle], or [RecordHandle#MISS]
    public long peekKey(long hi, long lo) {
        while (true) {
            long handle = find(hi, lo);
            if (!RecordHandle.isFound(handle)
                    || pool.pin(RecordHandle.record(handle), RecordHandle.generation(handle))) {
                return handle;
            }
        }
    }

    private boolean pin(long handle) {
        boolean pinned = pool.pin(RecordHandle.record(handle), RecordHandle.generation(handle));
        if (pinned) {
            touch(handle);
        }
        return pinned;
    }

    /// Reads what look-ups of these keys will read, so that the processor's caches have it: the reads of one key
    /// follow from each other, and those of several keys overlap. What is read may be of another moment.
    ///
    /// @return a sum that means nothing; a compiler would leave out what nothing asks for
    public int warm(BlockKey[] keys) {
        int[] at = new int[keys.length];
        for (int i = 0; i < at.length; i++) {
            at[i] = pool.bucketHead(keys[i].lo());
        }
        for (int i = 0; i < at.length; i++) {
            if (at[i] != NONE && pool.keyLo(at[i]) != keys[i].lo()) {
                at[i] = pool.bucketNext(at[i]);
            }
            at[i] = at[i] == NONE ? NONE : pool.hostPage(at[i]);
        }
        int read = 0;
        for (int page : at) {
            read += page == NONE ? 0 : slabs.warm(page);
        }
        return read;
    }

    /// Takes a pin away; under the lock when it was the last one on a dropped record.
    ///
    /// @throws IllegalStateException when the record has none
    public void unpin(int record) {
        if (pool.unpin(record)) {
            lock.lock();
            try {
                recordStates.reap(record);
            } finally {
                lock.unlock();
            }
        }
    }

    /// Counts a record as used now, and with it the blocks above it. The use is noted, and told to the policies by
    /// the next holder of the store's lock; a caller that fills the buffer empties it if the lock is free.
    public void touch(long handle) {
        if (noteUse(handle)) {
            tryDrainUses();
        }
    }

    /// Notes a use as [#touch] does, and leaves it to the caller when to report it to the policies.
    ///
    /// @return whether the buffer is filling up: [#tryDrainUses] is due, or uses will be lost
    public boolean noteUse(long handle) {
        int blocks = countsPaths ? 1 + pool.depth(RecordHandle.record(handle)) : 1;
        return uses.offer(handle, blocks);
    }

    /// Reports the uses noted by now to the policies, if the lock is free.
    public void tryDrainUses() {
        if (lock.tryLock()) {
            try {
                drainUses();
            } finally {
                lock.unlock();
            }
        }
    }

    /// Reports the uses noted by now to the policies; under the lock.
    void drainUses() {
        uses.drain(this::onUsed);
    }

    /// Uses that were lost, as the buffer was full.
    long droppedUses() {
        return uses.dropped();
    }

    private void onUsed(long handle) {
        int record = RecordHandle.record(handle);
        long control = pool.control(record);
        if (ControlWord.generation(control) != RecordHandle.generation(handle)
                || ControlWord.state(control) != ControlWord.SEALED) {
            return;
        }
        recordStates.onUsed(record);
        recordStates.confirmPrefetch(record);
        EvictionPolicy policy = recordStates.policyOf(record);
        policy.touch(record);
        writeBackQueue.onUsed(record);
        recordStates.onObjectUsed(record);
        boolean policies = policy.touchesAncestors();
        boolean admission = writeBackQueue.countsAncestorUses();
        countsPaths = policies || admission;
        notifyAncestors(record, policies, admission);
    }

    /// Reports a use of each block above one that was used, where its policy wants it or it was prefetched for
    /// this use.
    private void notifyAncestors(int record, boolean policies, boolean admission) {
        for (int at = pool.parent(record); at != NONE; at = pool.parent(at)) {
            boolean guessed = recordStates.confirmPrefetch(at);
            if (policies) {
                recordStates.policyOf(at).touch(at);
            }
            if (guessed || admission) {
                writeBackQueue.onUsed(at);
            }
            if (!guessed && !policies && !admission) {
                return;
            }
        }
    }

    /// Uses that the policy has not heard of yet: written by any reader, drained by the holder of the store's lock.
    ///
    /// Several small rings, one a group of threads, so that readers seldom meet. A full ring loses touches and
    /// counts them: a policy that misses some of a thousand uses a moment decides as well as before.
    ///
    /// Under a policy that counts the uses of a whole path, one of a long prompt is one of thousands of blocks, and
    /// takes milliseconds under the lock. So a ring is drained when it stands for many blocks, however few its uses
    /// are: who holds the lock next should not have to make up for all of them.
    static final class AccessBuffer {

        private static final int STRIPES = 8;
        private static final int RING = 256;

        /// Blocks that a ring stands for when it is to be drained: one to five milliseconds of the lock.
        private static final int MAX_BLOCKS = 16_384;

        /// Longs between two stripes' counters: two cache lines, so that neighbours do not share one.
        private static final int SPACING = 16;

        private static final long EMPTY = 0;

        private final AtomicLongArray cells = new AtomicLongArray(STRIPES * RING);
        private final AtomicLongArray tails = new AtomicLongArray(STRIPES * SPACING);
        private final AtomicLongArray heads = new AtomicLongArray(STRIPES * SPACING);
        private final AtomicLongArray blocks = new AtomicLongArray(STRIPES * SPACING);
        private final LongAdder lost = new LongAdder();

        /// Notes a use.
        ///
        /// @param handle of the deepest record used
        /// @param count of the blocks that it is a use of
        /// @return whether the ring is filling up, so that draining it soon is worth a try at the lock
        boolean offer(long handle, int count) {
            int stripe = (int) Thread.currentThread().threadId() & (STRIPES - 1);
            long tail = tails.get(stripe * SPACING);
            long used = tail - heads.get(stripe * SPACING);
            if (used >= RING || !tails.compareAndSet(stripe * SPACING, tail, tail + 1)) {
                lost.increment();
                return true;
            }
            cells.setRelease(stripe * RING + (int) (tail & (RING - 1)), handle + 1);
            return used > RING / 2 || isHeavy(stripe, count);
        }

        /// Returns whether a ring stands for many blocks once `more` are added.
        private boolean isHeavy(int stripe, int more) {
            return more > 1 && blocks.addAndGet(stripe * SPACING, more) >= MAX_BLOCKS;
        }

        /// Hands every noted use to `consumer`; under the store's lock. One that it fails at counts as handed
        /// over.
        void drain(LongConsumer consumer) {
            for (int stripe = 0; stripe < STRIPES; stripe++) {
                drain(stripe, consumer);
            }
        }

        private void drain(int stripe, LongConsumer consumer) {
            blocks.set(stripe * SPACING, 0);
            long head = heads.get(stripe * SPACING);
            long tail = tails.get(stripe * SPACING);
            try {
                while (head < tail) {
                    int cell = stripe * RING + (int) (head & (RING - 1));
                    long handle = cells.getAcquire(cell);
                    if (handle == EMPTY) {
                        break;
                    }
                    cells.setRelease(cell, EMPTY);
                    head++;
                    consumer.accept(handle - 1);
                }
            } finally {
                heads.setRelease(stripe * SPACING, head);
            }
        }

        long dropped() {
            return lost.sum();
        }
    }
}
