package io.kvcache.tiers.disk;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;

/// Tells the index what the regions hold, newest region first and in it the last entry first, a bounded
/// number at a time. While one region is told, the next ones are read.
final class Recovery {

    /// Regions read ahead: enough for a disk to be busy while entries are told, few enough for little memory.
    static final int LANES = 4;

    private final Regions regions;
    private final DiskIndex index;
    private final Closing closing;
    private final Freeing freeing;
    private final NamespaceTable namespaces;
    private final Queue<Region> ahead;
    private final Set<Long> lives = new HashSet<>();
    private final Queue<RegionEntries> reading = new ArrayDeque<>();
    private final Queue<RegionEntries> lanes;
    private int told;
    private long entries;
    private long tombstones;
    private long strange;
    private long lost;
    private int missing;
    private int forgotten;
    private boolean forgets;
    private boolean ended;

    /// Where a recovery leads.
    record Target(Regions regions, DiskIndex index, Closing closing, Freeing freeing, NamespaceTable namespaces) {}

    /// @param newestFirst regions that hold something
    /// @param lanes to read with
    Recovery(Target target, List<Region> newestFirst, List<RegionEntries> lanes) {
        this.regions = target.regions;
        this.index = target.index;
        this.closing = target.closing;
        this.freeing = target.freeing;
        this.namespaces = target.namespaces;
        this.ahead = new ArrayDeque<>(newestFirst);
        this.lanes = new ArrayDeque<>(lanes);
        newestFirst.forEach(region -> lives.add(region.life()));
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

    /// Entries that were durable and are not found.
    long lost() {
        return lost;
    }

    /// Regions that must be there and are not found: each is the [Predecessor] of another.
    int missing() {
        return missing;
    }

    /// Regions that are not told of because of that.
    int forgotten() {
        return forgotten;
    }

    /// Tells what has been read by now.
    ///
    /// @return entries told
    int pump(int atMost) {
        int left = atMost;
        readAhead();
        RegionEntries front = reading.peek();
        while (left > 0 && front != null && front.ready()) {
            if (told == 0) {
                miss(front);
            }
            if (forgets) {
                forget(front);
                front = reading.peek();
                continue;
            }
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

    /// Where tombstones or newer objects are lost, everything before them may be what they ended. The store may forget:
    /// none of that is told, and its lives are over, which the footers of its regions say from now on.
    private void miss(RegionEntries front) {
        lost += forgets ? 0 : front.lost();
        if (!forgets && front.losesReplacing()) {
            forgetUpTo(front.region().life());
        }
    }

    /// Where a whole region is not found, what is older than it may have been ended by it.
    private void missBefore(RegionEntries front) {
        Predecessor before = front.predecessor();
        if (before.isMissing(regions.over(), lives)) {
            missing++;
            if (before.replaces()) {
                forgetUpTo(front.region().life() - 1);
            }
        }
    }

    private void forgetUpTo(long life) {
        forgets = true;
        regions.end(life);
        forgotten += ahead.size();
        ahead.forEach(freeing::free);
        ahead.clear();
    }

    private void forget(RegionEntries front) {
        forgotten++;
        reading.remove();
        freeing.free(front.region());
        lanes.add(front);
        told = 0;
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
        missBefore(front);
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
