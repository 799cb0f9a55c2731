package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import java.util.List;

/// Findings of a [LogAudit] on a device.
///
/// @param superblocks how often a superblock was written: at each opening, for each namespace, and when a disk of the
///     store came or went
/// @param generation counts how often a disk of the store came or went, see [DiskSet]
/// @param disks of the store when that last happened
/// @param damagedCopy of the superblock, 1 or 2; 0 when both are sound. The next opening writes it anew
/// @param regions all of them, by number
/// @param namespaces by number
/// @param torn blocks and objects of regions without a sound trailer that are not whole: they were being written
///     when the log ended, or have gone bad since. No opening tells them
/// @param invalid entries beyond their region or of an unknown namespace; no opening tells them
/// @param lost entries that were durable, and that damaged metadata hides
/// @param missingRegions that were durable and are not found, as their trailer and their first head are damaged
/// @param discardedRegions which the next opening forgets because of that, as what they hold may have been deleted or
///     replaced by what is lost
/// @param repairedRegions whose trailer was written anew
/// @param superblockRepaired whether the damaged copy of the superblock was written anew
public record AuditReport(
        DiskGeometry geometry,
        long superblocks,
        long generation,
        int disks,
        int damagedCopy,
        List<RegionReport> regions,
        List<NamespaceReport> namespaces,
        long torn,
        long invalid,
        long lost,
        int missingRegions,
        int discardedRegions,
        int repairedRegions,
        boolean superblockRepaired) {

    public AuditReport {
        regions = List.copyOf(regions);
        namespaces = List.copyOf(namespaces);
    }

    /// State of a region.
    public enum RegionState {
        /// Nothing in it counts, and its footer says so.
        FREE,
        /// Nothing in it counts; the next opening writes its footer.
        UNMARKED,
        /// It has no trailer; the next opening writes it.
        OPEN,
        /// It has its trailer.
        CLOSED,
        /// Its trailer is damaged; what it holds was found by the heads of its batches, perhaps not all of it.
        DAMAGED,
        /// It, or a younger one, lacks entries that may have replaced or deleted what it holds; the next opening frees
        /// it.
        FORGOTTEN
    }

    /// One region.
    ///
    /// @param epoch its number in the order in which regions were begun, 0 when it holds nothing: the higher, the
    ///     younger are its blocks
    /// @param entries blocks, objects and tombstones
    /// @param bytes of blocks and objects, in whole pages
    public record RegionReport(RegionState state, long epoch, int entries, long bytes) {}

    /// Entries of a namespace that count, and those that do not.
    ///
    /// @param blocks that count, and were not found bad
    /// @param objects that count, and were not found bad
    /// @param bytes of both
    /// @param storedBytes that they take, in whole pages: fewer where they are coded
    /// @param orphans of those, blocks whose parent is nowhere
    /// @param replaced blocks and objects that a later entry or a tombstone replaces, or that the disk has given
    ///     up, as they may have been replaced while it was away
    /// @param badChecksums blocks and objects whose bytes are not theirs
    /// @param unreadable blocks and objects that the device cannot read
    public record NamespaceReport(
            Namespace namespace,
            long blocks,
            long objects,
            long bytes,
            long storedBytes,
            long orphans,
            long replaced,
            long tombstones,
            long badChecksums,
            long unreadable) {

        /// Bad blocks and objects, of whatever cause.
        public long corruptEntries() {
            return badChecksums + unreadable;
        }
    }

    /// Bad blocks and objects of all namespaces.
    public long corruptEntries() {
        return namespaces.stream().mapToLong(NamespaceReport::corruptEntries).sum();
    }

    /// Copies of the superblock that are sound, 1 or 2.
    public int intactCopies() {
        return damagedCopy == 0 ? 2 : 1;
    }

    /// Returns whether all is as it was written: blocks and objects, trailers, and both copies of the superblock.
    public boolean isIntact() {
        return corruptEntries() == 0
                && lost == 0
                && missingRegions == 0
                && damagedCopy == 0
                && count(RegionState.DAMAGED) == 0;
    }

    /// Regions in a state.
    public long count(RegionState state) {
        return regions.stream().filter(region -> region.state() == state).count();
    }
}
