package io.kvcache.tiers.front;

import io.kvcache.core.tier.ReclaimCandidates;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// What of a disk is in front of it as well, and where.
///
/// Owned by the tier's thread.
final class Copies {

    private final Map<Long, Copy> byDiskPlace = new HashMap<>();
    private final Map<Long, Copy> byPlace = new HashMap<>();

    private final Worth worth;

    /// How much a block is wanted, see [io.kvcache.core.tier.TierListener#score].
    interface Worth {
        double of(long keyHi, long keyLo);
    }

    Copies(Worth worth) {
        this.worth = worth;
    }

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

    /// A copy was used where it lies.
    void usedThere(long place) {
        Copy copy = byPlace.get(place);
        if (copy != null) {
            copy.used = true;
        }
    }

    /// A copy on offer.
    private record Candidate(int index, Copy copy, double worth) {}

    /// Keeps of a span in front what the store wants, most wanted first and as much as may be; where the store has no
    /// opinion, what was used since it came there or was last on offer.
    void choose(ReclaimCandidates offer) {
        List<Candidate> candidates = new ArrayList<>();
        for (int i = 0; i < offer.size(); i++) {
            Copy copy = byPlace.get(offer.address(i));
            if (copy != null) {
                candidates.add(new Candidate(i, copy, worth.of(offer.keyHi(i), offer.keyLo(i))));
            }
        }
        candidates.sort(Comparator.comparingDouble(Candidate::worth).reversed());
        for (Candidate each : candidates) {
            boolean wanted = Double.isNaN(each.worth) ? each.copy.used : each.worth > 0;
            if (wanted && offer.keep(each.index)) {
                each.copy.used = false;
            } else {
                forget(each.copy.diskPlace);
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
