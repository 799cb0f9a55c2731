package io.kvcache.tiers.disk;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/// The entries of a region that is about to be reclaimed, and which of them are kept.
///
/// Not all can be kept, see [ReclaimRules#keptPercent]: whoever chooses begins with what is worth most.
///
/// Tombstones are not offered. The region is the oldest, so what they bury lies in it or is gone already; and
/// nothing that is buried was ever kept and so written again behind its tombstone, because only what counts
/// is kept.
///
/// **Threads.** For use within [DiskIndex#offered].
public final class RegionOffer {

    /// A head and a page of trailer at worst.
    private static final int PAGES_BESIDE = 2;

    private final Region region;
    private final List<DiskEntry> entries;
    private final boolean complete;
    private final int largestPages;
    private final BitSet kept = new BitSet();
    private int pagesLeft;

    /// What can be kept of a region.
    ///
    /// @param pages of all together
    /// @param largestPages of one
    record Budget(int pages, int largestPages) {}

    RegionOffer(RegionEntries read, int regionPages, Budget budget) {
        this.region = read.region();
        this.complete = read.complete();
        this.entries = new ArrayList<>(read.count());
        for (int i = 0; i < read.count(); i++) {
            DiskEntry entry = read.entry(i);
            if (entry.fits(regionPages) && !entry.isTombstone()) {
                entries.add(entry);
            }
        }
        this.pagesLeft = budget.pages;
        this.largestPages = budget.largestPages;
    }

    /// Entries in the region.
    public int size() {
        return entries.size();
    }

    /// An entry; the later it was written the higher its index.
    public DiskEntry entry(int index) {
        return entries.get(index);
    }

    /// Where an entry lies.
    public long place(int index) {
        return region.place(entries.get(index).page());
    }

    /// Number of the region, see [DiskPlace#region].
    public int region() {
        return region.index();
    }

    /// Whether these are all entries of the region. If its trailer is damaged there may be more, whose places
    /// will be stale.
    public boolean complete() {
        return complete;
    }

    /// Keeps an entry.
    ///
    /// @return false when no more, or nothing as large, can be kept
    public boolean keep(int index) {
        int pages = entries.get(index).pages();
        if (kept.get(index)) {
            return true;
        }
        if (pages > largestPages || pages + PAGES_BESIDE > pagesLeft) {
            return false;
        }
        pagesLeft -= pages + PAGES_BESIDE;
        kept.set(index);
        return true;
    }

    /// The entries to keep, in their order.
    List<DiskEntry> kept() {
        return kept.stream().mapToObj(entries::get).toList();
    }
}
