package io.kvcache.core.memory;

import java.util.Arrays;

/// The slots of one slab (or of one run of slabs) while it is assigned to a class.
///
/// `owner[slot]` is the record that holds the slot, or [#FREE]. `link[slot]` chains the free slots of the slab, and
/// for an object's slots leads to the page of the next one.
final class Slab {

    static final int FREE = -1;
    private static final int END = -1;

    final int index;
    final SlotClass slotClass;
    private final int[] owner;
    private final int[] link;
    private int freeHead;
    private int live;

    /// Position in the class's list of slabs that have a free slot, or -1.
    int openPosition = -1;

    /// Position in the class's list of all its slabs.
    int classPosition = -1;

    Slab(int index, SlotClass slotClass) {
        this.index = index;
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
        return (int) ((index * SlabPool.SLAB_BYTES + slot * slotClass.slotBytes()) >> Pages.SHIFT);
    }

    int slotOf(int page) {
        return (int) ((Pages.offset(page) - index * SlabPool.SLAB_BYTES) / slotClass.slotBytes());
    }
}
