package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;

/// Makes room: while few regions are free it takes the oldest, offers its entries to the index, writes those
/// that are kept again, and when that is durable has the region become free. What replaced an entry that is
/// not kept must be durable by then too: until it is, the entry in this region is the one that was promised.
///
/// Of what is kept as much is read at a time as the memory for it holds; each block is verified, so that rot
/// is not carried on under a new place.
///
/// What is appended anew or buried, in a group that was begun before the kept entry is with the writer, is not
/// written again: it would come behind what replaces it, and after a crash it would be the one that counts. It
/// comes before whatever has not begun by then, because the writer writes what is kept first.
final class RegionReclaimer {

    /// Of a region: what is larger cannot be kept, since it could leave so much unused at the end of the one
    /// it is written to that nothing is won.
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
    private final FlushWaiters flushWaiters;
    private final RegionEraser regionEraser;
    private final LogListener index;
    private final MemorySegment buffer;
    private final ReclaimConfig rules;
    private final Queue<DiskEntry> kept = new ArrayDeque<>();
    private final Map<EntryKey, DiskEntry> unwritten = new HashMap<>();
    private Phase phase = Phase.IDLE;
    private int outstanding;
    private long regionsReclaimed;
    private long entriesKept;
    private long entriesDropped;
    private long entriesLost;

    /// What tells an entry from all others.
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
            FlushWaiters flushWaiters,
            RegionEraser regionEraser,
            LogListener index,
            MemorySegment buffer,
            ReclaimConfig rules) {
        this.io = io;
        this.regionTable = regionTable;
        this.entries = entries;
        this.writer = writer;
        this.flushWaiters = flushWaiters;
        this.regionEraser = regionEraser;
        this.index = index;
        this.buffer = buffer;
        this.rules = rules;
    }

    boolean isIdle() {
        return phase == Phase.IDLE;
    }

    void pump() {
        if (io.logHealth().isWritingHalted()) {
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
        index.onReclaim(offer);
        for (DiskEntry entry : offer.kept()) {
            kept.add(entry);
            unwritten.put(EntryKey.of(entry), entry);
        }
        writer.inFlight().forEach(this::onReplaced);
        entriesDropped += offer.size() - kept.size();
        phase = offer.size() == 0 ? Phase.SAVED : Phase.REWRITING;
    }

    /// A group was begun with something that a kept entry, which the writer has not got yet, must not come
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
            flushWaiters.written(durable -> phase = durable ? Phase.SAVED : Phase.SAVING);
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
        BufferList bufferList = new BufferList(List.of(target), entry.bytes());
        io.add(DeviceOperation.read(target, regionTable.offset(region, entry.page()), outcome -> {
            boolean current = unwritten.remove(EntryKey.of(entry), entry);
            if (current && outcome.isDone() && bufferList.checksum() == entry.checksum()) {
                writer.rewrite(entry, bufferList, address -> onRewritten(entry, address));
            } else {
                onRewritten(entry, LogAddress.NONE);
            }
        }));
    }

    private void onRewritten(DiskEntry entry, long to) {
        outstanding--;
        long from = entries.region().addressOf(entry.page());
        if (to != LogAddress.NONE) {
            entriesKept++;
            index.onMoved(entry.withPage(LogAddress.page(to)), from, to);
        } else if (!io.logHealth().isWritingHalted()) {
            entriesLost++;
            index.onLost(entry, from);
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
}
