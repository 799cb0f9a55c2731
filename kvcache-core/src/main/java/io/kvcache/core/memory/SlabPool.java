package io.kvcache.core.memory;

import io.kvcache.core.memory.SlabPool.Slab;
import io.kvcache.core.memory.SlabPool.SlabOwners;
import io.kvcache.core.spi.HostMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/// Host memory cut into slabs of one size, each assigned to one slot class.
///
/// A slab has 32 MiB, and less in host memory of less than 512 MiB, so that there are at least 16: see
/// [#slabBytes(long)]. With a few slabs, classes that are used by turns would take the last one from each other, and
/// lose all that is in it.
///
/// A slab that has emptied stays with its class until another class needs it. A class that runs out of slots first
/// takes a free slab, then an empty one of another class; beyond that the store has to evict, which is not
/// decided here.
///
/// **Ownership.** [#acquire] hands a slot to a record; [#release] takes it back and throws when it was free
/// already. The memory itself belongs to the caller that opened it.
///
/// **Threads.** Owned by the store's lock, except [#segment], [#next(int)] and [#slotBytes], which any thread may
/// call for a slot it has pinned.
public final class SlabPool {

    /// The largest slab. Large enough that it holds several blocks of common models and that huge pages fit, small
    /// enough that a store of 3 GiB has about a hundred to share among its classes.
    public static final long MAX_SLAB_BYTES = 32L << 20;

    /// The fewest slabs of a store: a class of few bytes, as the metadata of LMCache's chunks, takes at most a
    /// sixteenth of the memory and not half.
    private static final int MIN_SLABS = 16;

    /// The least host memory. Its slabs have 2 MiB, so that two of the largest slots of objects share one.
    public static final long MIN_BYTES = 32L << 20;

    /// No slot: the class is full and no slab can be had without evicting.
    public static final int NONE = -1;

    private static final int CACHE_LINE = 64;

    private final MemorySegment memory;
    private final LongPredicate awaitSpace;
    private final long slabBytes;
    private final @Nullable Slab[] slabs;
    private final int[] runHead;
    private final List<SlotClass> classes = new ArrayList<>();
    private final List<SlotClassSlabs> classSlabs = new ArrayList<>();
    private final FreeSlabs free;

    /// Slabs that there is space for: all, unless the operating system turned out to have less.
    private int usableSlabs;

    public SlabPool(HostMemory memory) {
        this(memory.segment(), slabBytes(memory.segment().byteSize()), memory::awaitSpace);
    }

    /// A pool with slabs of any size, a power of two.
    ///
    /// @param awaitSpace as [HostMemory#awaitSpace]
    SlabPool(MemorySegment memory, long slabBytes, LongPredicate awaitSpace) {
        long bytes = memory.byteSize();
        if (bytes < MIN_BYTES || bytes > Pages.MAX_BYTES) {
            throw new IllegalArgumentException(
                    "host memory is " + bytes + " bytes; a store takes from " + MIN_BYTES + " to " + Pages.MAX_BYTES);
        }
        this.memory = memory;
        this.awaitSpace = awaitSpace;
        this.slabBytes = slabBytes;
        int count = (int) (bytes / slabBytes);
        slabs = new Slab[count];
        runHead = new int[count];
        free = new FreeSlabs(count);
        usableSlabs = count;
    }

    /// Bytes of each slab for a given host memory: the largest power of two that fits 16 times, and 32 MiB at most.
    public static long slabBytes(long hostBytes) {
        return Math.min(MAX_SLAB_BYTES, Long.highestOneBit(hostBytes / MIN_SLABS));
    }

    /// Host memory without the rest that is smaller than a slab.
    public static long wholeSlabs(long hostBytes) {
        long slabBytes = slabBytes(hostBytes);
        return hostBytes / slabBytes * slabBytes;
    }

    /// Number of slots that fit in the given host memory when all have one size.
    public static long slotsIn(long hostBytes, long slotBytes) {
        long slabBytes = slabBytes(hostBytes);
        SlotClass all = SlotClass.of(0, Pages.roundUp(slotBytes), slabBytes);
        return hostBytes / slabBytes / Math.max(1, all.slabsPerSlot()) * all.slotsPerSlab();
    }

    /// Returns whether a class of this slot size exists.
    public boolean hasClass(long slotBytes) {
        return findClass(Pages.roundUp(slotBytes)) != null;
    }

    /// The class of exactly this slot size, added when it is new.
    ///
    /// @param slotBytes rounded up to whole pages; at most the whole pool
    public SlotClass classOf(long slotBytes) {
        long rounded = Pages.roundUp(slotBytes);
        SlotClass known = findClass(rounded);
        if (known != null) {
            return known;
        }
        if (rounded < 1 || rounded > capacityBytes()) {
            throw new IllegalArgumentException(
                    "a slot of " + slotBytes + " bytes does not fit; this store takes 1 to " + capacityBytes());
        }
        SlotClass added = SlotClass.of(classes.size(), rounded, slabBytes);
        classes.add(added);
        classSlabs.add(new SlotClassSlabs());
        return added;
    }

    private @Nullable SlotClass findClass(long slotBytes) {
        for (SlotClass each : classes) {
            if (each.slotBytes() == slotBytes) {
                return each;
            }
        }
        return null;
    }

    public int classCount() {
        return classes.size();
    }

    public SlotClass slotClass(int id) {
        return classes.get(id);
    }

    /// Takes a slot for a record.
    ///
    /// @return the slot's first page, or [#NONE] when that needs an eviction
    public int acquire(SlotClass slotClass, int record) {
        Slab slab = classSlabs.get(slotClass.id()).slabWithFreeSlot();
        if (slab == null) {
            slab = assign(slotClass);
            if (slab == null) {
                return NONE;
            }
        }
        int slot = slab.allocate(record);
        if (slab.isFull()) {
            classSlabs.get(slotClass.id()).markFull(slab);
        }
        return slab.page(slot);
    }

    /// Gives the class a slab, or the run of slabs of one slot, that is free or empty; does nothing when
    /// none is.
    public void grow(SlotClass slotClass) {
        assign(slotClass);
    }

    /// Gives a slot back.
    ///
    /// @throws IllegalStateException when the slot is free already
    public void release(int page) {
        Slab slab = slabOf(page);
        boolean wasFull = slab.isFull();
        slab.release(slab.slotOf(page));
        if (slab.slotClass.spansSlabs()) {
            unassign(slab);
        } else if (wasFull) {
            classSlabs.get(slab.slotClass.id()).markOpen(slab);
        }
    }

    /// The page of the object's slot after this one, or [#NONE].
    public int next(int page) {
        Slab slab = slabOf(page);
        return slab.link(slab.slotOf(page));
    }

    public void next(int page, int nextPage) {
        Slab slab = slabOf(page);
        slab.link(slab.slotOf(page), nextPage);
    }

    /// The number of the class that the slot at a page belongs to.
    public int classId(int page) {
        return slabOf(page).slotClass.id();
    }

    /// Bytes of the slot that begins at a page.
    public long slotBytes(int page) {
        return slabOf(page).slotClass.slotBytes();
    }

    /// Whether two slots lie in the same slab.
    public boolean isSameSlab(int page, int otherPage) {
        return slabOf(page) == slabOf(otherPage);
    }

    /// Fills a slot from its start.
    public void write(int page, byte[] bytes) {
        MemorySegment.copy(bytes, 0, memory, ValueLayout.JAVA_BYTE, Pages.offset(page), bytes.length);
    }

    /// Reads the first two cache lines of a slot, whatever lies there by now, so that the caches have them.
    ///
    /// @return what was read, which means nothing
    public int warm(int page) {
        long offset = Pages.offset(page);
        return memory.get(ValueLayout.JAVA_INT, offset) + memory.get(ValueLayout.JAVA_INT, offset + CACHE_LINE);
    }

    /// All of it; a slot lies at the offset of its page.
    public MemorySegment memory() {
        return memory;
    }

    /// Slabs that hold at least one slot of the class.
    public int slabCount(SlotClass slotClass) {
        return classSlabs.get(slotClass.id()).all.size();
    }

    /// The records that hold slots in the class's slab at a position below [#slabCount].
    public SlabOwners owners(SlotClass slotClass, int position) {
        return new SlabOwners(classSlabs.get(slotClass.id()).all.get(position));
    }

    /// Slots in the class's slabs, held or not. Holds for classes whose slots share a slab as for the others.
    public long slots(SlotClass slotClass) {
        return (long) slabCount(slotClass) * slotClass.slotsPerSlab();
    }

    /// Slabs of no class.
    public int freeSlabs() {
        return free.count();
    }

    /// Slots of the class that are held.
    public long heldSlots(SlotClass slotClass) {
        long held = 0;
        for (Slab slab : classSlabs.get(slotClass.id()).all) {
            held += slab.live();
        }
        return held;
    }

    /// Bytes in held slots, rounding included.
    public long heldBytes() {
        long held = 0;
        for (SlotClass each : classes) {
            held += heldSlots(each) * each.slotBytes();
        }
        return held;
    }

    public long capacityBytes() {
        return usableSlabs * slabBytes;
    }

    /// Bytes of each slab.
    public long slabBytes() {
        return slabBytes;
    }

    public int slabs() {
        return usableSlabs;
    }

    /// Slabs of no class, or empty in one.
    public int unusedSlabs() {
        int unused = free.count();
        for (SlotClassSlabs each : classSlabs) {
            for (Slab slab : each.all) {
                unused += slab.isEmpty() ? 1 : 0;
            }
        }
        return unused;
    }

    /// The record that holds the slot at a page, or -1.
    public int owner(int page) {
        Slab slab = slabOf(page);
        return slab.owner(slab.slotOf(page));
    }

    /// First slab of the `slabs`-long run that is cheapest to empty by the caller's price for a single slab,
    /// or -1 when every run has a slab whose price is negative. A free slab costs nothing.
    public int cheapestRun(int length, EvictionCost price) {
        long best = Long.MAX_VALUE;
        int bestStart = -1;
        for (int start = 0; start + length <= usableSlabs; start++) {
            long sum = 0;
            for (int i = start; i < start + length && sum >= 0; i++) {
                Slab slab = slabs[i] == null ? null : slabs[runHead[i]];
                long cost = slab == null || slab.isEmpty() ? 0 : price.costOf(new SlabOwners(slab));
                sum = cost < 0 ? -1 : sum + cost;
            }
            if (sum >= 0 && sum < best) {
                best = sum;
                bestStart = start;
            }
        }
        return bestStart;
    }

    /// The owners of slots in the slab at an index of the pool, or none when it is free.
    public SlabOwners ownersAt(int slabIndex) {
        return slabs[slabIndex] == null ? SlabOwners.NONE : new SlabOwners(slabs[runHead[slabIndex]]);
    }

    private @Nullable Slab assign(SlotClass slotClass) {
        int length = Math.max(1, slotClass.slabsPerSlot());
        int index = free.allocateRun(length);
        if (index < 0 && freeEmptySlabs() > 0) {
            index = free.allocateRun(length);
        }
        if (index < 0 || !hasSpace(index, length)) {
            return null;
        }
        Slab slab = new Slab(index, index * slabBytes, slotClass);
        for (int i = index; i < index + length; i++) {
            slabs[i] = slab;
            runHead[i] = index;
        }
        classSlabs.get(slotClass.id()).add(slab);
        return slab;
    }

    /// Whether slabs that were free may be written. Where they may not, the pool ends before them: none behind them
    /// is in use, as there is no space there either.
    private boolean hasSpace(int index, int length) {
        boolean space = awaitSpace.test((index + length) * slabBytes);
        if (!space) {
            usableSlabs = index;
            free.limit(index);
        }
        return space;
    }

    private int freeEmptySlabs() {
        int freed = 0;
        for (SlotClassSlabs each : classSlabs) {
            for (int i = each.all.size() - 1; i >= 0; i--) {
                Slab slab = each.all.get(i);
                if (slab.isEmpty()) {
                    unassign(slab);
                    freed++;
                }
            }
        }
        return freed;
    }

    private void unassign(Slab slab) {
        classSlabs.get(slab.slotClass.id()).remove(slab);
        int length = Math.max(1, slab.slotClass.slabsPerSlot());
        for (int i = slab.index; i < slab.index + length; i++) {
            slabs[i] = null;
            free.release(i);
        }
    }

    private Slab slabOf(int page) {
        int index = (int) Math.floorDiv(Pages.offset(page), slabBytes); // -1 for NONE: no slab's
        Slab slab = index < 0 ? null : slabs[index];
        if (slab == null) {
            throw new IllegalStateException("page " + page + " lies in slab " + index + ", which belongs to no class");
        }
        return slab;
    }

    /// Checks every count against the slabs themselves; for tests.
    public void validate() {
        int assigned = 0;
        for (int id = 0; id < classes.size(); id++) {
            for (Slab slab : classSlabs.get(id).all) {
                int live = 0;
                for (int slot = 0; slot < slab.slots(); slot++) {
                    live += slab.owner(slot) == Slab.FREE ? 0 : 1;
                }
                if (live != slab.live() || slab.isFull() != (slab.openPosition < 0)) {
                    throw new AssertionError(
                            "slab " + slab.index + " counts " + slab.live() + " live slots of " + live);
                }
                assigned += Math.max(1, slab.slotClass.slabsPerSlot());
            }
        }
        if (assigned + free.count() != usableSlabs) {
            throw new AssertionError(assigned + " slabs assigned, " + free.count() + " free, of " + usableSlabs);
        }
    }

    /// The slabs of one class, and among them those with a free slot. Both lists remove in constant time, by
    /// swapping.
    private static final class SlotClassSlabs {

        final List<Slab> all = new ArrayList<>();
        private final List<Slab> open = new ArrayList<>();

        /// A slab with a free slot, or null.
        @Nullable
        Slab slabWithFreeSlot() {
            return open.isEmpty() ? null : open.getLast();
        }

        void add(Slab slab) {
            slab.classPosition = all.size();
            all.add(slab);
            markOpen(slab);
        }

        void remove(Slab slab) {
            if (slab.openPosition >= 0) {
                markFull(slab);
            }
            Slab last = all.removeLast();
            if (last != slab) {
                all.set(slab.classPosition, last);
                last.classPosition = slab.classPosition;
            }
            slab.classPosition = -1;
        }

        void markOpen(Slab slab) {
            slab.openPosition = open.size();
            open.add(slab);
        }

        void markFull(Slab slab) {
            Slab last = open.removeLast();
            if (last != slab) {
                open.set(slab.openPosition, last);
                last.openPosition = slab.openPosition;
            }
            slab.openPosition = -1;
        }
    }

    /// The slots of one slab (or of one run of slabs) while it is assigned to a class.
    ///
    /// `owner[slot]` is the record that holds the slot, or [#FREE]. `link[slot]` chains the free slots of the slab,
    /// and for an object's slots leads to the page of the next one.
    static final class Slab {

        static final int FREE = -1;
        private static final int END = -1;

        final int index;
        private final long offset;
        final SlotClass slotClass;
        private final int[] owner;
        private final int[] link;
        private int freeHead;
        private int live;

        /// Position in the class's list of slabs that have a free slot, or -1.
        int openPosition = -1;

        /// Position in the class's list of all its slabs.
        int classPosition = -1;

        Slab(int index, long offset, SlotClass slotClass) {
            this.index = index;
            this.offset = offset;
            this.slotClass = slotClass;
            int slots = slotClass.slotsPerSlab();
            owner = new int[slots];
            link = new int[slots];
            Arrays.fill(owner, FREE);
            for (int slot = 0; slot < slots; slot++) {
                link[slot] = slot + 1 < slots ? slot + 1 : END;
            }
        }

        boolean isFull() {
            return live == owner.length;
        }

        boolean isEmpty() {
            return live == 0;
        }

        int live() {
            return live;
        }

        int slots() {
            return owner.length;
        }

        int owner(int slot) {
            return owner[slot];
        }

        int allocate(int record) {
            int slot = freeHead;
            assert slot != END : "slab " + index + " is full";
            freeHead = link[slot];
            owner[slot] = record;
            link[slot] = END;
            live++;
            return slot;
        }

        void release(int slot) {
            if (owner[slot] == FREE) {
                throw new IllegalStateException("slot " + slot + " of slab " + index + " is released twice");
            }
            owner[slot] = FREE;
            link[slot] = freeHead;
            freeHead = slot;
            live--;
        }

        int link(int slot) {
            return link[slot];
        }

        void link(int slot, int page) {
            link[slot] = page;
        }

        int page(int slot) {
            return (int) ((offset + slot * slotClass.slotBytes()) >> Pages.SHIFT);
        }

        int slotOf(int page) {
            return (int) ((Pages.offset(page) - offset) / slotClass.slotBytes());
        }
    }

    /// The slabs that no class holds. Taken lowest first, which keeps runs of adjacent slabs whole for as long as
    /// possible.
    static final class FreeSlabs {

        private final BitSet bits;

        FreeSlabs(int count) {
            bits = new BitSet(count);
            bits.set(0, count);
        }

        /// Takes `length` adjacent slabs and answers the first, or -1.
        int allocateRun(int length) {
            int start = bits.nextSetBit(0);
            while (start >= 0) {
                int end = bits.nextClearBit(start);
                if (end - start >= length) {
                    bits.clear(start, start + length);
                    return start;
                }
                start = bits.nextSetBit(end);
            }
            return -1;
        }

        void release(int index) {
            bits.set(index);
        }

        /// Leaves only the first `count` slabs.
        void limit(int count) {
            bits.clear(count, bits.length());
        }

        int count() {
            return bits.cardinality();
        }
    }

    /// The records that hold slots of one slab, for a caller that considers emptying it.
    public static final class SlabOwners {

        static final SlabOwners NONE = new SlabOwners(null);

        private final @Nullable Slab slab;

        SlabOwners(@Nullable Slab slab) {
            this.slab = slab;
        }

        /// Slots that are held.
        public int live() {
            return slab == null ? 0 : slab.live();
        }

        /// Bytes in held slots.
        public long heldBytes() {
            return slab == null ? 0 : slab.live() * slab.slotClass.slotBytes();
        }

        /// The class whose slots these are, or -1 when the slab has no class.
        public int classId() {
            return slab == null ? -1 : slab.slotClass.id();
        }

        /// Calls `visitor` with each owner, one call a held slot, until it answers false.
        ///
        /// The visitor may release slots of this slab, its own included.
        ///
        /// @return whether the visitor answered true throughout
        public boolean allOwnersMatch(IntPredicate visitor) {
            if (slab == null) {
                return true;
            }
            for (int slot = 0; slot < slab.slots(); slot++) {
                int owner = slab.owner(slot);
                if (owner != Slab.FREE && !visitor.test(owner)) {
                    return false;
                }
            }
            return true;
        }
    }

    /// Cost of emptying a slab, as its owner sees it.
    @FunctionalInterface
    public interface EvictionCost {

        /// A cost from 0, or a negative number when the slab cannot be emptied now.
        long costOf(SlabOwners owners);
    }
}
