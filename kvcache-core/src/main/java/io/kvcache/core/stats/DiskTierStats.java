package io.kvcache.core.stats;

import java.util.List;

/// Contents of the disks as the store knows them, and outcomes of writes.
///
/// @param disks by number
/// @param admitted records that were taken into the queue of writes
/// @param written of these, on disk since
/// @param notWritten of these, failed or in vain
/// @param notYet sealed, and not worth a write yet
/// @param tooLarge sealed, and larger than a disk takes: in host memory alone, always
/// @param queueFull not taken because too many bytes waited
/// @param sacrificed left host memory while they waited
/// @param evictedUnwritten evicted from host memory, and no disk had them
/// @param waitingBytes that wait to be written
/// @param writing records that are being written, and pinned for that
/// @param restored copies found at opening that count
/// @param superseded copies found at opening that do not, as newer ones or tombstones came before
/// @param orphans found at opening without all blocks above them
/// @param withoutRecord found at opening when all records were taken
public record DiskTierStats(
        List<LiveUsage> disks,
        long admitted,
        long written,
        long notWritten,
        long notYet,
        long tooLarge,
        long queueFull,
        long sacrificed,
        long evictedUnwritten,
        long waitingBytes,
        int writing,
        long restored,
        long superseded,
        long orphans,
        long withoutRecord) {

    public DiskTierStats {
        disks = List.copyOf(disks);
    }

    /// Live blocks on one disk.
    ///
    /// @param bytes in whole pages
    /// @param limitBytes that may be alive
    public record LiveUsage(long blocks, long bytes, long limitBytes) {}
}
