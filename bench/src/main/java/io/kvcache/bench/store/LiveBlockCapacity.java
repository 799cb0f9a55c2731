package io.kvcache.bench.store;

import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.disk.DiskGeometry;
import java.nio.file.Path;

/// A disk tier by the number of blocks that may be alive on it, all that is kept in reserve left out.
final class LiveBlockCapacity {

    /// The least change of a file that makes its regions larger by a page.
    private static final long STEP_BYTES = 200L * DiskGeometry.PAGE_BYTES;

    private LiveBlockCapacity() {}

    /// The smallest disk that has room for exactly so many.
    static DiskOptions smallestDisk(Path directory, long blocks, int blockBytes) {
        long wanted = blocks * slotBytes(blockBytes);
        DiskOptions disk = DiskOptions.of(directory, DiskGeometry.MIN_DEVICE_BYTES + wanted);
        while (disk.liveBytes() < wanted) {
            long missing = wanted - disk.liveBytes();
            disk = DiskOptions.of(directory, disk.bytes() + Math.ceilDiv(missing, STEP_BYTES) * STEP_BYTES);
        }
        return disk.withMaxLiveBytes(wanted);
    }

    /// How many have room on a disk.
    static long capacityOf(DiskOptions disk, int blockBytes) {
        return disk.liveBytes() / slotBytes(blockBytes);
    }

    private static long slotBytes(int blockBytes) {
        return Math.ceilDiv(blockBytes, DiskGeometry.PAGE_BYTES) * (long) DiskGeometry.PAGE_BYTES;
    }
}
