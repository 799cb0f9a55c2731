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
final class FrontCopyIndex {

    private final Map<Long, Copy> byDiskAddress = new HashMap<>();
    private final Map<Long, Copy> byAddress = new HashMap<>();

    private final Scorer scorer;

    /// How much a block is wanted, see [io.kvcache.core.tier.TierListener#score].
    interface Scorer {
        double score(long keyHi, long keyLo);
    }

    FrontCopyIndex(Scorer scorer) {
        this.scorer = scorer;
    }

    private static final class Copy {
        private long diskAddress;
        private long address;
        private boolean used;

        Copy(long diskAddress, long address) {
            this.diskAddress = diskAddress;
            this.address = address;
        }
    }

    /// What lies at a place of the disk has a copy in front.
    void add(long diskAddress, long address) {
        removeByDiskAddress(diskAddress);
        Copy copy = new Copy(diskAddress, address);
        byDiskAddress.put(diskAddress, copy);
        byAddress.put(address, copy);
    }

    /// Where the copy is, or null when there is none.
    @Nullable
    Long find(long diskAddress) {
        Copy copy = byDiskAddress.get(diskAddress);
        return copy == null ? null : copy.address;
    }

    /// A copy was read.
    void markUsed(long diskAddress) {
        Copy copy = byDiskAddress.get(diskAddress);
        if (copy != null) {
            copy.used = true;
        }
    }

    /// What lay at a place of the disk does not lie there any more.
    void removeByDiskAddress(long diskAddress) {
        Copy copy = byDiskAddress.remove(diskAddress);
        if (copy != null) {
            byAddress.remove(copy.address);
        }
    }

    /// It lies elsewhere on the disk.
    void updateDiskAddress(long from, long to) {
        Copy copy = byDiskAddress.remove(from);
        if (copy != null) {
            removeByDiskAddress(to);
            copy.diskAddress = to;
            byDiskAddress.put(to, copy);
        }
    }

    /// A copy lies elsewhere.
    void updateAddress(long from, long to) {
        Copy copy = byAddress.remove(from);
        if (copy != null) {
            copy.address = to;
            byAddress.put(to, copy);
        }
    }

    /// A copy is lost.
    void removeByAddress(long address) {
        Copy copy = byAddress.get(address);
        if (copy != null) {
            removeByDiskAddress(copy.diskAddress);
        }
    }

    /// A copy was used where it lies.
    void markUsedAt(long address) {
        Copy copy = byAddress.get(address);
        if (copy != null) {
            copy.used = true;
        }
    }

    /// A copy on offer.
    private record Candidate(int index, Copy copy, double score) {}

    /// Keeps of a span in front what the store wants, most wanted first and as much as may be; where the store has no
    /// opinion, what was used since it came there or was last on offer.
    void selectKept(ReclaimCandidates offer) {
        List<Candidate> candidates = new ArrayList<>();
        for (int i = 0; i < offer.size(); i++) {
            Copy copy = byAddress.get(offer.address(i));
            if (copy != null) {
                candidates.add(new Candidate(i, copy, scorer.score(offer.keyHi(i), offer.keyLo(i))));
            }
        }
        candidates.sort(Comparator.comparingDouble(Candidate::score).reversed());
        for (Candidate each : candidates) {
            boolean wanted = Double.isNaN(each.score) ? each.copy.used : each.score > 0;
            if (wanted && offer.keep(each.index)) {
                each.copy.used = false;
            } else {
                removeByDiskAddress(each.copy.diskAddress);
            }
        }
    }

    void clear() {
        byDiskAddress.clear();
        byAddress.clear();
    }

    int count() {
        return byAddress.size();
    }
}
