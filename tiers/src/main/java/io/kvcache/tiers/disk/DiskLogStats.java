package io.kvcache.tiers.disk;

import io.kvcache.core.tier.TierStats;
import java.util.Map;

/// Counters of a [DiskLog] since it was opened.
///
/// @param appended blocks, objects and tombstones written for callers
/// @param appendedBytes their bytes
/// @param appendsFailed taken, and not written
/// @param writtenBytes bytes that the device has written, by purpose
/// @param failures operations that the device could not do
/// @param reads ends of reads
/// @param coding what was coded and decoded
/// @param reclaimed outcomes of reclaiming
/// @param recovered entries found at opening
/// @param regions regions by state
public record DiskLogStats(
        long appended,
        long appendedBytes,
        long appendsFailed,
        Map<WriteKind, Long> writtenBytes,
        long failures,
        Reads reads,
        TierStats.Coding coding,
        Reclaimed reclaimed,
        Recovered recovered,
        RegionCounts regions) {

    public DiskLogStats {
        writtenBytes = Map.copyOf(writtenBytes);
    }

    /// Reads by how they ended.
    ///
    /// @param stale refused because the region had been reclaimed
    public record Reads(long good, long ioErrors, long checksumErrors, long stale) {}

    /// Outcomes of reclaimed regions.
    ///
    /// @param kept entries written again
    /// @param dropped entries that the index let go
    /// @param lost entries that were to be kept and could not, or were replaced before they were
    public record Reclaimed(long regions, long kept, long dropped, long lost) {}

    /// Entries found at opening.
    ///
    /// @param entries blocks and objects, those that are buried included
    /// @param invalid entries that were left out: of an unknown namespace, or beyond their region
    /// @param lost entries that were durable, and that damaged metadata hides
    /// @param missingRegions regions that were durable, and that damaged metadata hides
    /// @param discardedRegions regions that were left out for that: what they hold may have been deleted or
    ///     replaced
    public record Recovered(
            long entries, long tombstones, long invalid, long lost, int missingRegions, int discardedRegions) {}

    /// Regions by what they are in; together with those not looked at yet, all.
    ///
    /// @param bad not used until the next opening, because the footer cannot be written
    public record RegionCounts(int free, int open, int closing, int closed, int reclaiming, int freeing, int bad) {}

    /// The same in the words of all tiers.
    TierStats toTierStats(String path, long capacityBytes) {
        return new TierStats(
                path,
                capacityBytes,
                appended,
                appendedBytes,
                appendsFailed,
                allWrittenBytes(),
                reads.good,
                reads.ioErrors,
                reads.checksumErrors,
                reclaimed.regions,
                reclaimed.kept,
                recovered.entries,
                coding);
    }

    private long allWrittenBytes() {
        return writtenBytes.values().stream().mapToLong(Long::longValue).sum();
    }

    /// Bytes that the device has written for each byte of blocks that were appended; 0.0 when none were.
    public double writeAmplification() {
        return appendedBytes == 0 ? 0 : (double) allWrittenBytes() / appendedBytes;
    }

    /// Purpose of written bytes.
    public enum WriteKind {
        /// Blocks and objects that were appended.
        BLOCK,
        /// Blocks and objects that were kept when their region was reclaimed.
        REWRITE,
        /// Heads of batches.
        HEAD,
        /// Trailers of closed regions.
        TRAILER,
        /// Footers of free regions.
        FREE_FOOTER,
        /// Copies of the superblock.
        SUPERBLOCK
    }
}
