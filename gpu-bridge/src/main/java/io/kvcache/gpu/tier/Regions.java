package io.kvcache.gpu.tier;

import io.kvcache.core.tier.TierBlock;
import io.kvcache.gpu.driver.DeviceSpan;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Which region is written to, which are full, and which are free.
///
/// Owned by the tier's thread.
final class Regions {

    /// Kept free by all but a reclaim, which has to have somewhere to put what it keeps.
    private static final int RESERVED = 1;

    private final Deque<Region> free = new ArrayDeque<>();
    private final Deque<Region> full = new ArrayDeque<>();
    private final Map<Long, Region> bySequence = new HashMap<>();
    private @Nullable Region open;
    private long sequences;

    Regions(DeviceSpan memory, DeviceGeometry geometry) {
        for (int i = 0; i < geometry.regions(); i++) {
            free.add(new Region(memory.slice(i * geometry.regionBytes(), geometry.regionBytes())));
        }
    }

    /// Makes room for a block in the region that is written to, or in the next.
    ///
    /// @param reserve whether the last free region may be used
    /// @return null when there is none
    @Nullable
    DeviceEntry place(TierBlock block, boolean reserve) {
        Region present = open;
        if (present == null || !present.fits(block.bytes())) {
            if (free.size() <= (reserve ? 0 : RESERVED)) {
                return null;
            }
            if (present != null) {
                full.add(present);
            }
            present = free.remove();
            present.begin(++sequences);
            bySequence.put(present.sequence(), present);
            open = present;
        }
        DeviceEntry entry = new DeviceEntry(block, present, present.sequence(), present.take(block.bytes()));
        present.add(entry);
        return entry;
    }

    /// The region that a place is in, or null when it is gone.
    @Nullable
    Region at(long place) {
        return bySequence.get(DeviceEntry.sequenceOf(place));
    }

    /// Whether a reclaim is due.
    boolean scarce() {
        return free.size() <= RESERVED;
    }

    /// The oldest full region that nobody uses, closed for pins; or null.
    @Nullable
    Region oldest() {
        for (Iterator<Region> each = full.iterator(); each.hasNext(); ) {
            Region region = each.next();
            if (!region.busy() && region.close()) {
                each.remove();
                return region;
            }
        }
        return null;
    }

    /// What lay there is gone, though the memory is not free yet.
    void forget(Region region) {
        bySequence.remove(region.sequence());
    }

    /// The memory is free.
    void free(Region region) {
        free.add(region);
    }

    boolean pinned() {
        Region present = open;
        return (present != null && present.pinned()) || full.stream().anyMatch(Region::pinned);
    }
}
