package io.kvcache.tiers.disk;

import io.kvcache.tiers.disk.Region.RegionEpoch;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/// All regions, those that may be opened in the order they became free, those that may be reclaimed oldest
/// first.
final class RegionTable {

    private final DiskGeometry geometry;
    private final long deviceId;
    private final Region[] all;
    private final Queue<Region> free = new ArrayDeque<>();
    private final Queue<Region> closed = new PriorityQueue<>(Comparator.comparingLong(Region::epoch));
    private long lastEpoch;
    private long endedEpoch;

    /// @param mount sequence of the superblock that this opening wrote; it puts the numbers of this opening's
    ///     lives above those of all earlier ones, even of lives that nothing was found of
    RegionTable(DiskGeometry geometry, long deviceId, long mount) {
        this.geometry = geometry;
        this.deviceId = deviceId;
        this.all = new Region[geometry.regions()];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Region(i);
        }
        this.lastEpoch = mount << Integer.SIZE;
    }

    /// Returns the number of the opening that a region's life began in.
    static long opening(Region region) {
        return region.epoch() >>> Integer.SIZE;
    }

    DiskGeometry geometry() {
        return geometry;
    }

    int count() {
        return all.length;
    }

    Region get(int index) {
        return all[index];
    }

    /// The region of a place that was handed out.
    Region regionAt(long address) {
        int index = LogAddress.region(address);
        if (address < 0 || index >= all.length) {
            throw new IllegalArgumentException("place %s is in region %s of %s".formatted(address, index, all.length));
        }
        return all[index];
    }

    long offset(Region region, int page) {
        return geometry.regionOffset(region.index()) + (long) page * DiskGeometry.PAGE_BYTES;
    }

    /// Returns the offset of the footer.
    long footerOffset(Region region) {
        return offset(region, geometry.regionPages() - 1);
    }

    RegionEpoch epoch(Region region) {
        return new RegionEpoch(deviceId, region.index(), region.epoch());
    }

    /// Returns whether a page of metadata with this epoch can lie in this region.
    boolean isEpochOf(Region region, RegionEpoch epoch) {
        return epoch.device() == deviceId && epoch.region() == region.index();
    }

    /// Returns the epoch for the footer of a region that becomes free now: every later one is higher.
    RegionEpoch lastEpoch(Region region) {
        return new RegionEpoch(deviceId, region.index(), lastEpoch);
    }

    /// A life that was found on the device.
    void onEpochFound(long epoch) {
        lastEpoch = Math.max(lastEpoch, epoch);
    }

    /// A life that has ended, as have all before it.
    void endEpoch(long epoch) {
        endedEpoch = Math.max(endedEpoch, epoch);
    }

    /// The latest life that is over with all before it; what a footer says.
    long endedEpoch() {
        return endedEpoch;
    }

    int freeCount() {
        return free.size();
    }

    /// The latest life of a region that is full; 0 when none is.
    long newestFullEpoch() {
        long newest = 0;
        for (Region region : all) {
            boolean held = switch (region.state()) {
                case CLOSING, CLOSED, RECLAIMING -> true;
                case UNKNOWN, FREE, OPEN, FREEING, BAD -> false;
            };
            newest = held ? Math.max(newest, region.epoch()) : newest;
        }
        return newest;
    }

    /// Gives the region that has been free longest its next life.
    @Nullable
    Region openNext() {
        Region region = free.poll();
        if (region != null) {
            region.setEpoch(++lastEpoch);
            region.transitionTo(Region.State.OPEN);
        }
        return region;
    }

    void addFree(Region region) {
        region.transitionTo(Region.State.FREE);
        free.add(region);
    }

    void addClosed(Region region) {
        region.transitionTo(Region.State.CLOSED);
        closed.add(region);
    }

    /// The region to reclaim: the oldest of all that hold something. While that one is not closed yet there is
    /// none, so that lives end in their order.
    @Nullable
    Region takeOldest() {
        Region region = closed.peek();
        if (region == null || isClosingBefore(region.epoch())) {
            return null;
        }
        closed.remove();
        region.transitionTo(Region.State.RECLAIMING);
        return region;
    }

    private boolean isClosingBefore(long epoch) {
        for (Region region : all) {
            if (region.state() == Region.State.CLOSING && region.epoch() < epoch) {
                return true;
            }
        }
        return false;
    }

    /// Regions in a state.
    int count(Region.State state) {
        int count = 0;
        for (Region region : all) {
            count += region.state() == state ? 1 : 0;
        }
        return count;
    }

    /// Checks that the queues hold what they should.
    void validate() {
        requireAll(free, Region.State.FREE);
        requireAll(closed, Region.State.CLOSED);
        require(count(Region.State.OPEN) <= 1, "more than one region is open");
        for (Region region : all) {
            require(
                    region.epoch() <= lastEpoch,
                    "region " + region.index() + " lives in a life that was not given yet");
        }
    }

    private void requireAll(Queue<Region> queue, Region.State state) {
        for (Region region : queue) {
            require(region.state() == state, "region " + region.index() + " is " + region.state() + ", not " + state);
        }
        require(queue.size() == count(state), queue.size() + " of " + count(state) + " regions are queued as " + state);
    }

    /// Checks that no reader is counted.
    void requireUnread() {
        for (Region region : all) {
            require(region.readers() == 0, "region " + region.index() + " has " + region.readers() + " readers");
        }
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }
}
