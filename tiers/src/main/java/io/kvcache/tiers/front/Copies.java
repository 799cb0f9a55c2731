package io.kvcache.tiers.front;

import io.kvcache.core.tier.TierOffer;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// What of a disk is in front of it as well, and where.
///
/// Owned by the tier's thread.
final class Copies {

    private final Map<Long, Copy> byDiskPlace = new HashMap<>();
    private final Map<Long, Copy> byPlace = new HashMap<>();

    private static final class Copy {
        private long diskPlace;
        private long place;
        private boolean used;

        Copy(long diskPlace, long place) {
            this.diskPlace = diskPlace;
            this.place = place;
        }
    }

    /// What lies at a place of the disk has a copy in front.
    void add(long diskPlace, long place) {
        forget(diskPlace);
        Copy copy = new Copy(diskPlace, place);
        byDiskPlace.put(diskPlace, copy);
        byPlace.put(place, copy);
    }

    /// Where the copy is, or null when there is none.
    @Nullable
    Long of(long diskPlace) {
        Copy copy = byDiskPlace.get(diskPlace);
        return copy == null ? null : copy.place;
    }

    /// A copy was read.
    void used(long diskPlace) {
        Copy copy = byDiskPlace.get(diskPlace);
        if (copy != null) {
            copy.used = true;
        }
    }

    /// What lay at a place of the disk does not lie there any more.
    void forget(long diskPlace) {
        Copy copy = byDiskPlace.remove(diskPlace);
        if (copy != null) {
            byPlace.remove(copy.place);
        }
    }

    /// It lies elsewhere on the disk.
    void movedOnDisk(long from, long to) {
        Copy copy = byDiskPlace.remove(from);
        if (copy != null) {
            forget(to);
            copy.diskPlace = to;
            byDiskPlace.put(to, copy);
        }
    }

    /// A copy lies elsewhere.
    void moved(long from, long to) {
        Copy copy = byPlace.remove(from);
        if (copy != null) {
            copy.place = to;
            byPlace.put(to, copy);
        }
    }

    /// A copy is lost.
    void lost(long place) {
        Copy copy = byPlace.get(place);
        if (copy != null) {
            forget(copy.diskPlace);
        }
    }

    /// Keeps of a span in front what was read since it came there or was last on offer.
    void choose(TierOffer offer) {
        for (int i = 0; i < offer.size(); i++) {
            Copy copy = byPlace.get(offer.place(i));
            if (copy != null && copy.used && offer.keep(i)) {
                copy.used = false;
            } else if (copy != null) {
                forget(copy.diskPlace);
            }
        }
    }

    void clear() {
        byDiskPlace.clear();
        byPlace.clear();
    }

    int count() {
        return byPlace.size();
    }
}
