package io.kvcache.core.memory;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The slabs of one class, and among them those with a free slot. Both lists remove in constant time, by swapping.
final class SlotClassSlabs {

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
