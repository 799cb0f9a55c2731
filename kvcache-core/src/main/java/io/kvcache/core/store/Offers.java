package io.kvcache.core.store;

import io.kvcache.core.tier.TierOffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/// Chooses what is kept of a span of a disk that is about to be reclaimed: all that is alive and
/// worth another write, as far as that may be; what is not kept is forgotten with all below it. Of
/// a disk that is ranked the host tier's policy says what comes first.
///
/// **Threads.** Any; takes the store's lock for a bounded number of copies at a time.
record Offers(DiskLife diskLife, ReentrantLock lock) {

    /// Copies looked at in one turn of the lock: some tens of microseconds.
    private static final int TURN = 256;

    void choose(int disk, TierOffer offer) {
        List<DiskLife.Live> live = new ArrayList<>();
        for (int from = 0; from < offer.size(); from += TURN) {
            lock.lock();
            try {
                diskLife.live(disk, offer, from, Math.min(offer.size(), from + TURN), live);
            } finally {
                lock.unlock();
            }
        }
        live.sort(Comparator.comparing(DiskLife.Live::within)
                .thenComparingDouble(DiskLife.Live::rank)
                .thenComparingLong(DiskLife.Live::worth)
                .reversed());
        live.removeIf(each -> each.wanted() && offer.keep(each.index()));
        for (DiskLife.Live refused : live) {
            lock.lock();
            try {
                diskLife.refused(disk, offer, refused);
            } finally {
                lock.unlock();
            }
        }
    }
}
