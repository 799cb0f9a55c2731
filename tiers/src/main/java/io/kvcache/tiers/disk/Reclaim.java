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
final class Reclaim {

    /// Of a region: what is larger cannot be kept, since it could leave so much unused at the end of the one
    /// it is written to that nothing is won.
    private static final int LARGEST_SHARE = 8;

    private enum Phase {
        IDLE,
        READING,
        REWRITING,
        SAVING,
        SAVED
    }

    private final Io io;
    private final Parts parts;
    private final MemorySegment buffer;
    private final ReclaimRules rules;
    private final Queue<DiskEntry> kept = new ArrayDeque<>();
    private final Map<Identity, DiskEntry> unwritten = new HashMap<>();
    private Phase phase = Phase.IDLE;
    private int outstanding;
    private long regionsReclaimed;
    private long entriesKept;
    private long entriesDropped;
    private long entriesLost;

    /// What tells an entry from all others.
    private record Identity(long keyHi, long keyLo, int namespaceAndPart) {
        static Identity of(DiskEntry entry) {
            return new Identity(entry.keyHi(), entry.keyLo(), entry.identity() >>> DiskEntry.FLAG_BITS);
        }
    }

    /// What it works with beside the device.
    record Parts(
            Regions regions,
            RegionEntries entries,
            GroupWriter writer,
            Flushes flushes,
            Freeing freeing,
            DiskIndex index) {}

    /// @param buffer for what is kept
    Reclaim(Io io, Parts parts, MemorySegment buffer, ReclaimRules rules) {
        this.io = io;
        this.parts = parts;
        this.buffer = buffer;
        this.rules = rules;
    }

    boolean idle() {
        return phase == Phase.IDLE;
    }

    void pump() {
        if (io.condition().halted()) {
            return;
        }
        switch (phase) {
            case IDLE -> begin();
            case READING -> offer();
            case REWRITING -> rewrite();
            case SAVING -> {}
            case SAVED -> end();
        }
    }

    private void begin() {
        if (parts.regions.free() + parts.freeing.pending() < rules.freeRegions()) {
            Region oldest = parts.regions.takeOldest();
            if (oldest != null) {
                parts.entries.read(oldest);
                phase = Phase.READING;
            }
        }
    }

    private void offer() {
        if (!parts.entries.ready()) {
            return;
        }
        int regionPages = parts.regions.geometry().regionPages();
        int share = (int) ((long) regionPages * rules.keptPercent() / 100);
        int largest = Math.min(regionPages / LARGEST_SHARE, rules.rewriteBytes() / Geometry.PAGE_BYTES);
        int pages = Math.min(share, parts.writer.rewritePages());
        RegionOffer offer = new RegionOffer(parts.entries, regionPages, new RegionOffer.Budget(pages, largest));
        parts.index.offered(offer);
        for (DiskEntry entry : offer.kept()) {
            kept.add(entry);
            unwritten.put(Identity.of(entry), entry);
        }
        parts.writer.flying().forEach(this::replaced);
        entriesDropped += offer.size() - kept.size();
        phase = offer.size() == 0 ? Phase.SAVED : Phase.REWRITING;
    }

    /// A group was begun with something that a kept entry, which the writer has not got yet, must not come
    /// behind.
    void replaced(DiskEntry by) {
        if (by.isOfNamespace()) {
            unwritten.values().removeIf(by::replaces);
        } else {
            unwritten.remove(Identity.of(by));
        }
    }

    /// Begins the next batch when the one before has ended.
    private void rewrite() {
        if (outstanding > 0) {
            return;
        }
        if (kept.isEmpty()) {
            phase = Phase.SAVING;
            parts.flushes.written(durable -> phase = durable ? Phase.SAVED : Phase.SAVING);
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
        Region region = parts.entries.region();
        Pieces pieces = new Pieces(List.of(target), entry.bytes());
        io.transfers().add(Transfer.read(target, parts.regions.offset(region, entry.page()), outcome -> {
            boolean current = unwritten.remove(Identity.of(entry), entry);
            if (current && outcome.isDone() && pieces.checksum() == entry.checksum()) {
                parts.writer.rewrite(entry, pieces, place -> rewritten(entry, place));
            } else {
                rewritten(entry, DiskPlace.NONE);
            }
        }));
    }

    private void rewritten(DiskEntry entry, long to) {
        outstanding--;
        long from = parts.entries.region().place(entry.page());
        if (to != DiskPlace.NONE) {
            entriesKept++;
            parts.index.moved(entry.at(DiskPlace.page(to)), from, to);
        } else if (!io.condition().halted()) {
            entriesLost++;
            parts.index.lost(entry, from);
        }
    }

    private void end() {
        Region region = parts.entries.region();
        region.retire();
        parts.freeing.free(region);
        regionsReclaimed++;
        phase = Phase.IDLE;
    }

    private static long bytes(DiskEntry entry) {
        return (long) entry.pages() * Geometry.PAGE_BYTES;
    }

    DiskLogStats.Reclaimed stats() {
        return new DiskLogStats.Reclaimed(regionsReclaimed, entriesKept, entriesDropped, entriesLost);
    }
}
