package io.kvcache.tiers.disk;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;

/// Tells the index what the regions hold, newest region first and in it the last entry first, a bounded
/// number at a time. While one region is told, the next ones are read.
final class Recovery {

    /// Regions read ahead: enough for a disk to be busy while entries are told, few enough for little memory.
    static final int LANES = 4;

    private final Regions regions;
    private final DiskIndex index;
    private final Closing closing;
    private final NamespaceTable namespaces;
    private final Queue<Region> ahead;
    private final Queue<RegionEntries> reading = new ArrayDeque<>();
    private final Queue<RegionEntries> lanes;
    private int told;
    private long entries;
    private long tombstones;
    private long strange;
    private boolean ended;

    /// Where a recovery leads.
    record Target(Regions regions, DiskIndex index, Closing closing, NamespaceTable namespaces) {}

    /// @param newestFirst regions that hold something
    /// @param lanes to read with
    Recovery(Target target, List<Region> newestFirst, List<RegionEntries> lanes) {
        this.regions = target.regions;
        this.index = target.index;
        this.closing = target.closing;
        this.namespaces = target.namespaces;
        this.ahead = new ArrayDeque<>(newestFirst);
        this.lanes = new ArrayDeque<>(lanes);
    }

    boolean ended() {
        return ended;
    }

    /// Entries told.
    long entries() {
        return entries;
    }

    /// Tombstones told.
    long tombstones() {
        return tombstones;
    }

    /// Entries not told, because they cannot be right.
    long strange() {
        return strange;
    }

    /// Tells what has been read by now.
    ///
    /// @return entries told
    int pump(int atMost) {
        int left = atMost;
        readAhead();
        RegionEntries front = reading.peek();
        while (left > 0 && front != null && front.ready()) {
            while (left > 0 && told < front.count()) {
                told++;
                left--;
                tell(front, front.entry(front.count() - told));
            }
            if (told == front.count()) {
                end(front);
                front = reading.peek();
            }
        }
        if (front == null && !ended) {
            ended = true;
            index.recoveryEnded();
        }
        return atMost - left;
    }

    private void readAhead() {
        while (!ahead.isEmpty() && !lanes.isEmpty()) {
            RegionEntries lane = lanes.remove();
            lane.read(ahead.remove());
            reading.add(lane);
        }
    }

    private void tell(RegionEntries from, DiskEntry entry) {
        if (!entry.fits(regions.geometry().regionPages()) || entry.namespace() >= namespaces.size()) {
            strange++;
        } else if (entry.isTombstone()) {
            tombstones++;
            index.buried(entry);
        } else {
            entries++;
            index.recovered(entry, from.region().place(entry.page()));
        }
    }

    /// A region that was open gets the trailer that it lacks.
    private void end(RegionEntries front) {
        if (front.unclosed()) {
            List<DiskEntry> all = new ArrayList<>(front.count());
            for (int i = 0; i < front.count(); i++) {
                all.add(front.entry(i));
            }
            closing.close(OpenRegion.recovered(regions, front.region(), all));
        } else {
            regions.closed(front.region());
        }
        reading.remove();
        lanes.add(front);
        told = 0;
        readAhead();
    }
}
