package io.kvcache.core.memory;

import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;

/// The records that hold slots of one slab, for a caller that considers emptying it.
public final class SlabOwners {

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
