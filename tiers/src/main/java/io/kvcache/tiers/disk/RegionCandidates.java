package io.kvcache.tiers.disk;

import io.kvcache.core.tier.ReclaimCandidates;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/// The entries of a region that is about to be reclaimed, and which of them are kept.
///
/// Not all can be kept, see [ReclaimConfig#keptPercent]: whoever chooses begins with what is worth most.
///
/// Tombstones are not offered. The region is the oldest, so what they bury lies in it or is gone already; and
/// nothing that is buried was ever kept and so written again behind its tombstone, because only what counts
/// is kept.
///
/// **Threads.** For use within [LogListener#onReclaim].
public final class RegionCandidates implements ReclaimCandidates {

    /// A head and a page of trailer at worst.
    private static final int OVERHEAD_PAGES = 2;

    private final Region region;
    private final List<DiskEntry> entries;
    private final boolean complete;
    private final int maxEntryPages;
    private final BitSet kept = new BitSet();
    private int pagesLeft;

    /// What can be kept of a region.
    ///
    /// @param pages of all together
    /// @param maxEntryPages of one
    record Budget(int pages, int maxEntryPages) {}

    RegionCandidates(RegionEntryReader read, int regionPages, Budget budget) {
        this.region = read.region();
        this.complete = read.isComplete();
        this.entries = new ArrayList<>(read.count());
        for (int i = 0; i < read.count(); i++) {
            DiskEntry entry = read.entry(i);
            if (entry.fitsIn(regionPages) && !entry.isTombstone()) {
                entries.add(entry);
            }
        }
        this.pagesLeft = budget.pages;
        this.maxEntryPages = budget.maxEntryPages;
    }

    /// Entries in the region.
    @Override
    public int size() {
        return entries.size();
    }

    /// An entry; the later it was written the higher its index.
    public DiskEntry entry(int index) {
        return entries.get(index);
    }

    @Override
    public long keyHi(int index) {
        return entries.get(index).keyHi();
    }

    @Override
    public long keyLo(int index) {
        return entries.get(index).keyLo();
    }

    /// Where an entry lies.
    @Override
    public long address(int index) {
        return region.addressOf(entries.get(index).page());
    }

    /// Number of the region, see [LogAddress#region].
    public int region() {
        return region.index();
    }

    /// Whether these are all entries of the region. If its trailer is damaged there may be more, whose places
    /// will be stale.
    public boolean isComplete() {
        return complete;
    }

    /// Keeps an entry.
    ///
    /// @return false when no more, or nothing as large, can be kept
    @Override
    public boolean keep(int index) {
        int pages = entries.get(index).pages();
        if (kept.get(index)) {
            return true;
        }
        if (pages > maxEntryPages || pages + OVERHEAD_PAGES > pagesLeft) {
            return false;
        }
        pagesLeft -= pages + OVERHEAD_PAGES;
        kept.set(index);
        return true;
    }

    /// The entries to keep, in their order.
    List<DiskEntry> kept() {
        return kept.stream().mapToObj(entries::get).toList();
    }
}
