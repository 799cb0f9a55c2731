package io.kvcache.tiers.disk;

import io.kvcache.core.codec.StoredVerifier;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import io.kvcache.tiers.disk.LogIo.PagePool;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;

/// Frees regions. While few are free, it takes the oldest, offers its entries to the store, and writes the kept
/// ones again. When those are durable, it marks the region free. The entries that replaced the dropped ones must
/// be durable by then too: until they are, the entry in this region is the one that was promised.
///
/// It reads as many kept entries at a time as its memory holds. Each block is verified, so that rot is not carried
/// on under a new address.
///
/// An entry is not written again when its key was appended anew or buried in a batch that was begun before the
/// entry is with the writer. It would come behind its replacement, and would count after a crash. It comes before
/// every batch not begun by then, because the writer writes kept entries first.
final class RegionReclaimer {

    /// Divisor of a region: a larger entry cannot be kept. It could leave so much unused at the end of its new
    /// region that nothing is won.
    private static final int MAX_ENTRY_SHARE = 8;

    private enum Phase {
        IDLE,
        READING,
        REWRITING,
        SAVING,
        SAVED
    }

    private final LogIo io;
    private final RegionTable regionTable;
    private final RegionEntryReader entries;
    private final BatchWriter writer;
    private final RegionEraser regionEraser;
    private final TierListener listener;
    private final NamespaceTable namespaces;
    private final MemorySegment buffer;
    private final ReclaimConfig rules;
    private final StoredVerifier verifier = new StoredVerifier();
    private final Queue<DiskEntry> kept = new ArrayDeque<>();
    private final Map<EntryKey, DiskEntry> unwritten = new HashMap<>();
    private Phase phase = Phase.IDLE;
    private int outstanding;
    private long regionsReclaimed;
    private long entriesKept;
    private long entriesDropped;
    private long entriesLost;

    /// Key that tells an entry from all others.
    private record EntryKey(long keyHi, long keyLo, int namespaceAndPart) {
        static EntryKey of(DiskEntry entry) {
            return new EntryKey(entry.keyHi(), entry.keyLo(), entry.identity() >>> DiskEntry.FLAG_BITS);
        }
    }

    /// @param buffer for what is kept
    RegionReclaimer(
            LogIo io,
            RegionTable regionTable,
            RegionEntryReader entries,
            BatchWriter writer,
            RegionEraser regionEraser,
            TierListener listener,
            NamespaceTable namespaces,
            MemorySegment buffer,
            ReclaimConfig rules) {
        this.io = io;
        this.regionTable = regionTable;
        this.entries = entries;
        this.writer = writer;
        this.regionEraser = regionEraser;
        this.listener = listener;
        this.namespaces = namespaces;
        this.buffer = buffer;
        this.rules = rules;
    }

    boolean isIdle() {
        return phase == Phase.IDLE;
    }

    void pump() {
        if (io.isWritingHalted()) {
            return;
        }
        switch (phase) {
            case IDLE -> begin();
            case READING -> selectKept();
            case REWRITING -> rewriteNextBatch();
            case SAVING -> {}
            case SAVED -> finish();
        }
    }

    private void begin() {
        if (regionTable.freeCount() + regionEraser.pending() < rules.freeRegions()) {
            Region oldest = regionTable.takeOldest();
            if (oldest != null) {
                entries.read(oldest);
                phase = Phase.READING;
            }
        }
    }

    private void selectKept() {
        if (!entries.isReady()) {
            return;
        }
        int regionPages = regionTable.geometry().regionPages();
        int share = (int) ((long) regionPages * rules.keptPercent() / 100);
        int largest = Math.min(regionPages / MAX_ENTRY_SHARE, rules.rewriteBytes() / DiskGeometry.PAGE_BYTES);
        int pages = Math.min(share, writer.rewritePages());
        RegionCandidates offer =
                new RegionCandidates(entries, regionPages, new RegionCandidates.Budget(pages, largest));
        listener.onReclaim(offer);
        for (DiskEntry entry : offer.kept()) {
            kept.add(entry);
            unwritten.put(EntryKey.of(entry), entry);
        }
        writer.inFlight().forEach(this::onReplaced);
        entriesDropped += offer.size() - kept.size();
        phase = offer.size() == 0 ? Phase.SAVED : Phase.REWRITING;
    }

    /// A batch was begun with something that a kept entry, which the writer has not got yet, must not come
    /// behind.
    void onReplaced(DiskEntry by) {
        if (by.isNamespaceTombstone()) {
            unwritten.values().removeIf(by::replaces);
        } else {
            unwritten.remove(EntryKey.of(by));
        }
    }

    /// Begins the next batch when the one before has ended.
    private void rewriteNextBatch() {
        if (outstanding > 0) {
            return;
        }
        if (kept.isEmpty()) {
            phase = Phase.SAVING;
            writer.flushWritten(durable -> phase = durable ? Phase.SAVED : Phase.SAVING);
            return;
        }
        long at = 0;
        DiskEntry next;
        while ((next = kept.peek()) != null && at + bytes(next) <= buffer.byteSize()) {
            kept.remove();
            outstanding++;
            read(next, buffer.asSlice(at, bytes(next)));
            at += bytes(next);
        }
    }

    private void read(DiskEntry entry, MemorySegment target) {
        Region region = entries.region();
        BufferList bufferList = BufferList.stored(target, entry);
        io.read(target, regionTable.offset(region, entry.page()), outcome -> {
            boolean current = unwritten.remove(EntryKey.of(entry), entry);
            if (current && outcome.isDone() && isGood(entry, target)) {
                writer.rewrite(entry, bufferList, address -> onRewritten(entry, address));
            } else {
                onRewritten(entry, LogAddress.NONE);
            }
        });
    }

    private boolean isGood(DiskEntry entry, MemorySegment stored) {
        verifier.begin(entry.layout(), entry.bytes(), entry.checksum());
        verifier.add(stored);
        return verifier.isGood();
    }

    private void onRewritten(DiskEntry entry, long to) {
        outstanding--;
        long from = entries.region().addressOf(entry);
        boolean written = to != LogAddress.NONE;
        if (!written && io.isWritingHalted()) {
            return;
        }
        entriesKept += written ? 1 : 0;
        entriesLost += written ? 0 : 1;
        TierBlock block = namespaces.toTierBlock(entry);
        if (block != null && written) {
            listener.onMoved(block, from, to);
        } else if (block != null) {
            listener.onLost(block, from);
        }
    }

    private void finish() {
        Region region = entries.region();
        region.invalidateAddresses();
        regionEraser.enqueue(region);
        regionsReclaimed++;
        phase = Phase.IDLE;
    }

    private static long bytes(DiskEntry entry) {
        return (long) entry.pages() * DiskGeometry.PAGE_BYTES;
    }

    DiskLogStats.Reclaimed stats() {
        return new DiskLogStats.Reclaimed(regionsReclaimed, entriesKept, entriesDropped, entriesLost);
    }

    /// The entries of a region that is about to be reclaimed, and which of them are kept.
    ///
    /// Not all can be kept, see [DiskLogConfig.ReclaimConfig#keptPercent]: the chooser begins with the blocks that
    /// are worth most.
    ///
    /// Tombstones are not offered. The region is the oldest, so what they bury lies in it or is gone already; and
    /// nothing that is buried was ever kept and so written again behind its tombstone, because only what counts
    /// is kept.
    ///
    /// **Threads.** For use within [TierListener#onReclaim].
    static final class RegionCandidates implements ReclaimCandidates {

        /// A head and a page of trailer at worst.
        private static final int OVERHEAD_PAGES = 2;

        private final Region region;
        private final List<DiskEntry> entries;
        private final boolean complete;
        private final int maxEntryPages;
        private final BitSet kept = new BitSet();
        private int pagesLeft;

        /// Limits on the entries kept of a region.
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

        /// Returns the address of an entry.
        @Override
        public long address(int index) {
            return region.addressOf(entries.get(index));
        }

        /// Number of the region, see [LogAddress#region].
        public int region() {
            return region.index();
        }

        /// Returns whether these are all entries of the region. If its trailer is damaged there may be more, whose
        /// addresses will be stale.
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

    /// Makes regions free, once no read from them is under way: the footer says so, a sync makes that durable, and
    /// then, if asked for, their bytes are given back. Until then a crash brings back what they held, which is
    /// still there.
    static final class RegionEraser {

        private final LogIo io;
        private final RegionTable regionTable;
        private final PagePool pages;
        private final boolean discard;
        private final Queue<Region> waiting = new ArrayDeque<>();
        private int inFlight;

        RegionEraser(LogIo io, RegionTable regionTable, PagePool pages, boolean discard) {
            this.io = io;
            this.regionTable = regionTable;
            this.pages = pages;
            this.discard = discard;
        }

        /// Takes a region whose places are stale.
        void enqueue(Region region) {
            region.transitionTo(Region.State.FREEING);
            waiting.add(region);
        }

        /// Regions that are about to be free, without slow readers that hold them up.
        int pending() {
            int unread = (int)
                    waiting.stream().filter(region -> region.readers() == 0).count();
            return unread + inFlight;
        }

        boolean isIdle() {
            return waiting.isEmpty() && inFlight == 0;
        }

        void pump() {
            int count = io.isWritingHalted() ? 0 : waiting.size();
            for (int i = 0; i < count; i++) {
                Region region = waiting.remove();
                MemorySegment page = region.readers() == 0 ? pages.acquire() : null;
                if (page == null) {
                    waiting.add(region);
                } else {
                    inFlight++;
                    writeFreeFooter(region, page);
                }
            }
        }

        private void writeFreeFooter(Region region, MemorySegment page) {
            regionTable.endEpoch(region.epoch());
            RegionFooter.free(regionTable.lastEpoch(region), regionTable.endedEpoch())
                    .write(page);
            io.write(WriteKind.FREE_FOOTER, page, regionTable.footerOffset(region), done -> {
                pages.release(page);
                if (done) {
                    io.sync(durable -> onFooterWritten(region, durable));
                } else {
                    finish(region, Region.State.BAD);
                }
            });
        }

        private void onFooterWritten(Region region, boolean durable) {
            if (!durable) {
                finish(region, Region.State.BAD);
            } else if (discard) {
                long bytes = regionTable.geometry().regionBytes() - DiskGeometry.PAGE_BYTES;
                io.discard(regionTable.offset(region, 0), bytes, _ -> finish(region, Region.State.FREE));
            } else {
                finish(region, Region.State.FREE);
            }
        }

        private void finish(Region region, Region.State state) {
            inFlight--;
            if (state == Region.State.FREE) {
                regionTable.addFree(region);
            } else {
                region.transitionTo(state);
            }
        }
    }
}
