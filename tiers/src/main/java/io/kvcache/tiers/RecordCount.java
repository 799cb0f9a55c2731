package io.kvcache.tiers;

import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.tier.TierSource;
import java.util.List;

/// How many records a store needs when nobody says so.
final class RecordCount {

    /// One record for 64 KiB of disk: blocks that small are the least that is worth a disk's while.
    private static final long DISK_BYTES_PER_RECORD = 64 << 10;

    private RecordCount() {}

    static int estimate(long hostBytes, List<DiskOptions> disks, List<TierSource> others) {
        long below = disks.isEmpty()
                ? others.stream().mapToLong(TierSource::maxLiveBytes).sum()
                : disks.stream().mapToLong(DiskOptions::bytes).sum(); // what is in front of them is there as well
        long onDisk = below / DISK_BYTES_PER_RECORD;
        return Math.toIntExact(
                Math.min(HostStoreConfig.defaultRecords(hostBytes) + onDisk, HostStoreConfig.MAX_RECORDS));
    }
}
