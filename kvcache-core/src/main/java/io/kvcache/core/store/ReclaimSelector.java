package io.kvcache.core.store;

import io.kvcache.core.tier.ReclaimCandidates;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/// Chooses what is kept of a span of a disk that is about to be reclaimed: all that is alive and
/// worth another write, as far as that may be; what is not kept is forgotten with all below it. Of
/// a disk that is ranked the host tier's policy says what comes first.
///
/// **Threads.** Any; takes the store's lock for a bounded number of copies at a time.
record ReclaimSelector(DiskResidency diskResidency, ReentrantLock lock) {

    /// Copies looked at in one turn of the lock: some tens of microseconds.
    private static final int BATCH = 256;

    void select(int disk, ReclaimCandidates offer) {
        List<DiskResidency.LiveCopy> live = new ArrayList<>();
        for (int from = 0; from < offer.size(); from += BATCH) {
            lock.lock();
            try {
                diskResidency.collectLive(disk, offer, from, Math.min(offer.size(), from + BATCH), live);
            } finally {
                lock.unlock();
            }
        }
        live.sort(Comparator.comparing(DiskResidency.LiveCopy::isWithinShare)
                .thenComparingDouble(DiskResidency.LiveCopy::rank)
                .thenComparingLong(DiskResidency.LiveCopy::score)
                .reversed());
        live.removeIf(each -> each.isInUse() && offer.keep(each.index()));
        for (DiskResidency.LiveCopy refused : live) {
            lock.lock();
            try {
                diskResidency.discard(disk, offer, refused);
            } finally {
                lock.unlock();
            }
        }
    }
}
