package io.kvcache.core.memory;

/// One size of slot: exactly one block of some shape, or one of the three object sizes.
///
/// A slot of at most half a slab shares its slab with others; a larger one takes a run of whole adjacent slabs, so
/// that a block is always contiguous.
///
/// @param id position in the pool's table of classes
/// @param slotBytes bytes of one slot, a multiple of 4,096
/// @param slabsPerSlot adjacent slabs that one slot takes, or 0 when several slots share a slab
/// @param slotsPerSlab slots that share one slab, or 1 when a slot takes whole slabs
public record SlotClass(int id, long slotBytes, int slabsPerSlot, int slotsPerSlab) {

    /// The object classes, largest first: an object is a list of such slots.
    public static final long OBJECT_LARGE_BYTES = 1 << 20;

    public static final long OBJECT_MEDIUM_BYTES = 64 << 10;
    public static final long OBJECT_SMALL_BYTES = Pages.BYTES;

    static SlotClass of(int id, long slotBytes, long slabBytes) {
        if (slotBytes <= slabBytes / 2) {
            return new SlotClass(id, slotBytes, 0, (int) (slabBytes / slotBytes));
        }
        int slabs = Math.toIntExact((slotBytes + slabBytes - 1) / slabBytes);
        return new SlotClass(id, slotBytes, slabs, 1);
    }

    /// Whether one slot takes whole slabs.
    public boolean spansSlabs() {
        return slabsPerSlot > 0;
    }
}
