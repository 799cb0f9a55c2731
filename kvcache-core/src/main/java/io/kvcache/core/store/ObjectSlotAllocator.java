package io.kvcache.core.store;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;

/// Cuts an object into slots of the three object classes, largest first, and lists them by the slots' links.
///
/// As many 1 MiB slots as fit, then 64 KiB slots, then 4 KiB slots; sixteen of one size become one of the
/// next. So an object wastes less than 4 KiB and has at most 15 slots of each size below its megabytes.
/// Where a class has no room and can get none, one slot of a larger class takes the rest.
///
/// A class holds whole slabs. In a store of fewer slabs than classes they would take the last slab from each other
/// with every put, and lose what is in it. So two slabs are for 1 MiB and 4 KiB slots, and one is for 4 KiB slots.
///
/// **Threads.** Owned by the store's lock.
final class ObjectSlotAllocator {

    /// Of object slots.
    private static final int SIZES = 3;

    private final SlabPool slabs;
    private final SlotAllocator slotAllocator;
    private final MemoryShares shares;
    private final RecordStates recordStates;
    private final SlotClass[] classes;

    ObjectSlotAllocator(StoreComponents parts, SlotAllocator slotAllocator, RecordStates recordStates) {
        slabs = parts.slabs();
        shares = parts.memoryShares();
        this.slotAllocator = slotAllocator;
        this.recordStates = recordStates;
        SlotClass large = slabs.classOf(SlotClass.OBJECT_LARGE_BYTES);
        SlotClass medium = slabs.classOf(SlotClass.OBJECT_MEDIUM_BYTES);
        SlotClass small = slabs.classOf(SlotClass.OBJECT_SMALL_BYTES);
        classes = switch ((int) Math.min(SIZES, slabs.capacityBytes() / SlabPool.SLAB_BYTES)) {
            case SIZES -> new SlotClass[] {large, medium, small};
            case 2 -> new SlotClass[] {large, small};
            default -> new SlotClass[] {small};
        };
    }

    /// Takes slots for an object of `bytes`.
    ///
    /// @param sparing whether to leave what waits to be written to disk where it is
    /// @return the first page, or [SlabPool#NONE] when there is no room; then nothing is taken
    int allocate(long bytes, int record, boolean sparing) {
        slotAllocator.beginRequest(shares.group(record), shares.charge(record));
        try {
            return allocateAll(bytes, record, sparing);
        } finally {
            slotAllocator.endRequest();
        }
    }

    /// The class of the first slot that an object of `bytes` takes.
    SlotClass classOf(long bytes) {
        long left = Pages.roundUp(bytes);
        int at = 0;
        while (at < classes.length - 1 && left < classes[at].slotBytes()) {
            at++;
        }
        return classes[at];
    }

    private int allocateAll(long bytes, int record, boolean sparing) {
        SlotList list = new SlotList(slabs);
        long left = Pages.roundUp(bytes);
        for (int at = 0; at < classes.length; at++) {
            long slotBytes = classes[at].slotBytes();
            for (; left >= slotBytes; left -= slotBytes) {
                if (list.add(allocateSlot(classes[at], record, sparing))) {
                    continue;
                }
                if (addLarger(list, at, record, sparing)) {
                    return list.first();
                }
                recordStates.releaseSlots(list.first());
                return SlabPool.NONE;
            }
        }
        return list.first();
    }

    /// What is left of an object fits one slot of any larger class: better waste one than refuse.
    private boolean addLarger(SlotList list, int at, int record, boolean sparing) {
        for (int larger = at - 1; larger >= 0; larger--) {
            if (list.add(allocateSlot(classes[larger], record, sparing))) {
                return true;
            }
        }
        return false;
    }

    private int allocateSlot(SlotClass slotClass, int record, boolean sparing) {
        return sparing ? slotAllocator.allocateSparing(slotClass, record) : slotAllocator.allocate(slotClass, record);
    }

    /// Slots linked one after another.
    private static final class SlotList {
        private final SlabPool slabs;
        private int first = SlabPool.NONE;
        private int last = SlabPool.NONE;

        SlotList(SlabPool slabs) {
            this.slabs = slabs;
        }

        boolean add(int page) {
            if (page == SlabPool.NONE) {
                return false;
            }
            if (first == SlabPool.NONE) {
                first = page;
            } else {
                slabs.next(last, page);
            }
            last = page;
            return true;
        }

        int first() {
            return first;
        }
    }
}
