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
final class DeviceRegions {

    /// Kept free by all but a reclaim, which has to have somewhere to put what it keeps.
    private static final int RESERVED = 1;

    private final Deque<DeviceRegion> free = new ArrayDeque<>();
    private final Deque<DeviceRegion> full = new ArrayDeque<>();
    private final Map<Long, DeviceRegion> bySequence = new HashMap<>();
    private @Nullable DeviceRegion open;
    private long sequences;

    DeviceRegions(DeviceSpan memory, DeviceGeometry geometry) {
        for (int i = 0; i < geometry.regions(); i++) {
            free.add(new DeviceRegion(memory.slice(i * geometry.regionBytes(), geometry.regionBytes())));
        }
    }

    /// Makes room for a block in the region that is written to, or in the next.
    ///
    /// @param reserve whether the last free region may be used
    /// @return null when there is none
    @Nullable
    DeviceEntry allocate(TierBlock block, boolean reserve) {
        DeviceRegion present = open;
        if (present == null || !present.fits(block.bytes())) {
            if (free.size() <= (reserve ? 0 : RESERVED)) {
                return null;
            }
            if (present != null) {
                full.add(present);
            }
            present = free.remove();
            present.open(++sequences);
            bySequence.put(present.sequence(), present);
            open = present;
        }
        DeviceEntry entry = new DeviceEntry(block, present, present.sequence(), present.allocate(block.bytes()));
        present.add(entry);
        return entry;
    }

    /// The region that a place is in, or null when it is gone.
    @Nullable
    DeviceRegion regionAt(long place) {
        return bySequence.get(DeviceEntry.sequenceOf(place));
    }

    /// Whether a reclaim is due.
    boolean isLowOnSpace() {
        return free.size() <= RESERVED;
    }

    /// The oldest full region that nobody uses, closed for pins; or null.
    @Nullable
    DeviceRegion oldest() {
        for (Iterator<DeviceRegion> each = full.iterator(); each.hasNext(); ) {
            DeviceRegion region = each.next();
            if (!region.isBusy() && region.close()) {
                each.remove();
                return region;
            }
        }
        return null;
    }

    /// What lay there is gone, though the memory is not free yet.
    void forget(DeviceRegion region) {
        bySequence.remove(region.sequence());
    }

    /// The memory is free.
    void free(DeviceRegion region) {
        free.add(region);
    }

    boolean hasPinned() {
        DeviceRegion present = open;
        return (present != null && present.isPinned()) || full.stream().anyMatch(DeviceRegion::isPinned);
    }
}
