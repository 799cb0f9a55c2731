package io.kvcache.tiers.disk;

import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.disk.DiskSet.Membership;
import io.kvcache.tiers.disk.OpenRegion.TrailerWriter;
import io.kvcache.tiers.disk.RegionReclaimer.RegionEraser;
import io.kvcache.tiers.disk.RegionTrailer.RegionPredecessor;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;

/// Tells the store what the regions hold, newest region first and in it the last entry first, a bounded
/// number at a time. While one region is told, the next ones are read.
final class LogRecovery {

    /// Regions read ahead: enough for a disk to be busy while entries are told, few enough for little memory.
    static final int MAX_READERS = 4;

    private static final Logger LOG = System.getLogger(DiskLog.class.getName());

    private final RegionTable regionTable;
    private final String name;
    private final TierListener listener;
    private final TrailerWriter trailerWriter;
    private final RegionEraser regionEraser;
    private final NamespaceTable namespaces;
    private final Membership membership;
    private final Queue<Region> pendingRegions;
    private final BitSet tombstonedNamespaces = new BitSet();
    private final Set<Long> epochs = new HashSet<>();
    private final Queue<RegionEntryReader> reading = new ArrayDeque<>();
    private final Queue<RegionEntryReader> idleReaders;
    private int reported;
    private long entries;
    private long tombstones;
    private long invalidEntries;
    private long lostEntries;
    private int missingRegions;
    private int discardedRegions;
    private boolean discarding;
    private boolean ended;

    /// @param name of the tier, for the log
    /// @param membership says what the disk has given up
    /// @param newestFirst regions that hold something
    /// @param lanes to read with
    LogRecovery(
            String name,
            RegionTable regionTable,
            TierListener listener,
            TrailerWriter trailerWriter,
            RegionEraser regionEraser,
            NamespaceTable namespaces,
            Membership membership,
            List<Region> newestFirst,
            List<RegionEntryReader> lanes) {
        this.name = name;
        this.regionTable = regionTable;
        this.listener = listener;
        this.trailerWriter = trailerWriter;
        this.regionEraser = regionEraser;
        this.namespaces = namespaces;
        this.membership = membership;
        this.pendingRegions = new ArrayDeque<>(newestFirst);
        this.idleReaders = new ArrayDeque<>(lanes);
        newestFirst.forEach(region -> epochs.add(region.epoch()));
    }

    boolean isComplete() {
        return ended;
    }

    /// Returns the entries found. A missing region is known because another names it as its [RegionPredecessor];
    /// others are discarded for its sake.
    DiskLogStats.Recovered stats() {
        return new DiskLogStats.Recovered(
                entries, tombstones, invalidEntries, lostEntries, missingRegions, discardedRegions);
    }

    /// Tells what has been read by now.
    ///
    /// @return entries told
    int pump(int atMost) {
        int left = atMost;
        readAhead();
        RegionEntryReader front = reading.peek();
        while (left > 0 && front != null && front.isReady()) {
            if (reported == 0) {
                checkLostEntries(front);
            }
            if (discarding) {
                discardRegion(front);
                front = reading.peek();
                continue;
            }
            while (left > 0 && reported < front.count()) {
                reported++;
                left--;
                reportEntry(front, front.entry(front.count() - reported));
            }
            if (reported == front.count()) {
                finishRegion(front);
                front = reading.peek();
            }
        }
        if (front == null && !ended) {
            ended = true;
            warnOfLosses();
            listener.onRecoveryEnded();
        }
        return atMost - left;
    }

    private void warnOfLosses() {
        if (lostEntries > 0 || missingRegions > 0) {
            LOG.log(
                    Level.WARNING,
                    "{0} lacks {1} entries and {2} whole regions that were durable: metadata in the file is damaged. {3} regions were"
                            + " forgotten, as what they hold may have been deleted or replaced by what is lost."
                            + " Check the disk (dmesg, SMART)",
                    name,
                    lostEntries,
                    missingRegions,
                    discardedRegions);
        }
    }

    /// If tombstones or newer objects are lost, they may have ended everything before them. The store may forget:
    /// it reports none of the earlier entries. Their lives are over, and the footers of their regions say so from
    /// now on.
    private void checkLostEntries(RegionEntryReader front) {
        lostEntries += discarding ? 0 : front.lostEntries();
        if (!discarding && front.losesReplacingEntries()) {
            discardUpTo(front.region().epoch());
        }
    }

    /// If a whole region is not found, it may have ended any older entry.
    private void checkPredecessor(RegionEntryReader front) {
        RegionPredecessor before = front.predecessor();
        if (before.isMissing(regionTable.endedEpoch(), epochs)) {
            missingRegions++;
            if (before.replaces()) {
                discardUpTo(front.region().epoch() - 1);
            }
        }
    }

    private void discardUpTo(long epoch) {
        discarding = true;
        regionTable.endEpoch(epoch);
        discardedRegions += pendingRegions.size();
        pendingRegions.forEach(regionEraser::enqueue);
        pendingRegions.clear();
    }

    private void discardRegion(RegionEntryReader front) {
        discardedRegions++;
        reading.remove();
        regionEraser.enqueue(front.region());
        idleReaders.add(front);
        reported = 0;
    }

    private void readAhead() {
        while (!pendingRegions.isEmpty() && !idleReaders.isEmpty()) {
            RegionEntryReader lane = idleReaders.remove();
            lane.read(pendingRegions.remove());
            reading.add(lane);
        }
    }

    private void reportEntry(RegionEntryReader from, DiskEntry entry) {
        if (!entry.fitsIn(regionTable.geometry().regionPages()) || entry.namespace() >= namespaces.size()) {
            invalidEntries++;
        } else if (entry.isTombstone()) {
            tombstones++;
            if (entry.isNamespaceTombstone()) {
                tombstonedNamespaces.set(entry.namespace());
            } else {
                listener.onTombstone(entry.keyHi(), entry.keyLo());
            }
        } else {
            entries++;
            boolean counts = !tombstonedNamespaces.get(entry.namespace())
                    && membership.counts(entry, RegionTable.opening(from.region()));
            TierBlock block = counts ? namespaces.toTierBlock(entry) : null;
            if (block != null) {
                listener.onRecovered(block, from.region().addressOf(entry));
            }
        }
    }

    /// A region that was open gets the trailer that it lacks.
    private void finishRegion(RegionEntryReader front) {
        checkPredecessor(front);
        if (front.isUnclosed()) {
            List<DiskEntry> all = new ArrayList<>(front.count());
            for (int i = 0; i < front.count(); i++) {
                all.add(front.entry(i));
            }
            trailerWriter.enqueue(OpenRegion.recovered(regionTable, front.region(), all));
        } else {
            regionTable.addClosed(front.region());
        }
        reading.remove();
        idleReaders.add(front);
        reported = 0;
        readAhead();
    }
}
