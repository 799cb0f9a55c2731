package io.kvcache.core.memory;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Host memory cut into slabs of 32 MiB, each assigned to one slot class.
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

    /// Large enough that a slab holds several blocks of common models and that huge pages fit, small enough
    /// that a store of 3 GiB has about a hundred to share among its classes.
    public static final long SLAB_BYTES = 32L << 20;

    /// No slot: the class is full and no slab can be had without evicting.
    public static final int NONE = -1;

    private final MemorySegment memory;
    private final @Nullable Slab[] slabs;
    private final int[] runHead;
    private final List<SlotClass> classes = new ArrayList<>();
    private final List<SlotClassSlabs> classSlabs = new ArrayList<>();
    private final FreeSlabs free;

    public SlabPool(MemorySegment memory) {
        long bytes = memory.byteSize();
        if (bytes < SLAB_BYTES || bytes > Pages.MAX_BYTES) {
            throw new IllegalArgumentException("host memory is " + bytes + " bytes; a store takes from " + SLAB_BYTES
                    + " (one slab) to " + Pages.MAX_BYTES);
        }
        this.memory = memory;
        int count = (int) (bytes / SLAB_BYTES);
        slabs = new Slab[count];
        runHead = new int[count];
        free = new FreeSlabs(count);
    }

    /// Whether there is a class of this slot size already.
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
        if (rounded < 1 || rounded > slabs.length * SLAB_BYTES) {
            throw new IllegalArgumentException("a slot of " + slotBytes + " bytes does not fit; this store takes 1 to "
                    + slabs.length * SLAB_BYTES);
        }
        SlotClass added = SlotClass.of(classes.size(), rounded);
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

    /// The slot's memory, cut to `bytes`.
    public MemorySegment segment(int page, long bytes) {
        return memory.asSlice(Pages.offset(page), bytes);
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
        return slabs.length * SLAB_BYTES;
    }

    public int slabs() {
        return slabs.length;
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
        for (int start = 0; start + length <= slabs.length; start++) {
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
        if (index < 0) {
            return null;
        }
        Slab slab = new Slab(index, slotClass);
        for (int i = index; i < index + length; i++) {
            slabs[i] = slab;
            runHead[i] = index;
        }
        classSlabs.get(slotClass.id()).add(slab);
        return slab;
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
        int index = (int) (Pages.offset(page) / SLAB_BYTES);
        Slab slab = slabs[index];
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
        if (assigned + free.count() != slabs.length) {
            throw new AssertionError(assigned + " slabs assigned, " + free.count() + " free, of " + slabs.length);
        }
    }
}
