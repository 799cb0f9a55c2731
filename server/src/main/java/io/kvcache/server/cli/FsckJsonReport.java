package io.kvcache.server.cli;

import io.kvcache.tiers.disk.AuditReport;
import io.kvcache.tiers.disk.AuditReport.NamespaceReport;
import io.kvcache.tiers.disk.AuditReport.RegionReport;
import io.kvcache.tiers.disk.AuditReport.RegionState;
import io.kvcache.tiers.disk.LogHeader;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// The result of an audit as one JSON object. Programs rely on the names.
record FsckJsonReport(
        int formatVersion,
        long deviceBytes,
        long regionBytes,
        int soundSuperblocks,
        int damagedSuperblock,
        long superblocksWritten,
        long generation,
        int disks,
        Map<String, RegionSummary> regions,
        List<NamespaceSummary> namespaces,
        long torn,
        long strangeEntries,
        long lostEntries,
        int missingRegions,
        int forgottenRegions,
        long bad,
        int repairedRegions,
        boolean superblockRepaired) {

    /// Regions in one state; lives count regions in the order in which they were begun.
    record RegionSummary(long count, long entries, long bytes, long oldestLife, long newestLife) {}

    /// One namespace, without its salt and its digest, as either is enough to compute keys.
    record NamespaceSummary(
            String model,
            String revision,
            String tenant,
            long blocks,
            long objects,
            long bytes,
            long storedBytes,
            long orphans,
            long replaced,
            long tombstones,
            long badChecksums,
            long unreadable) {}

    static FsckJsonReport of(AuditReport report) {
        Map<String, RegionSummary> regions = new LinkedHashMap<>();
        for (RegionState state : RegionState.values()) {
            regions.put(state.name().toLowerCase(Locale.ROOT), sumRegions(report, state));
        }
        return new FsckJsonReport(
                LogHeader.FORMAT_VERSION,
                report.geometry().deviceBytes(),
                report.geometry().regionBytes(),
                report.intactCopies(),
                report.damagedCopy(),
                report.superblocks(),
                report.generation(),
                report.disks(),
                regions,
                report.namespaces().stream()
                        .map(FsckJsonReport::namespaceSummary)
                        .toList(),
                report.torn(),
                report.invalid(),
                report.lost(),
                report.missingRegions(),
                report.discardedRegions(),
                report.corruptEntries(),
                report.repairedRegions(),
                report.superblockRepaired());
    }

    /// Sums over the regions in a state.
    static RegionSummary sumRegions(AuditReport report, RegionState state) {
        List<RegionReport> all = report.regions().stream()
                .filter(region -> region.state() == state)
                .toList();
        return new RegionSummary(
                all.size(),
                all.stream().mapToLong(RegionReport::entries).sum(),
                all.stream().mapToLong(RegionReport::bytes).sum(),
                all.stream().mapToLong(RegionReport::epoch).min().orElse(0),
                all.stream().mapToLong(RegionReport::epoch).max().orElse(0));
    }

    private static NamespaceSummary namespaceSummary(NamespaceReport report) {
        return new NamespaceSummary(
                report.namespace().model(),
                report.namespace().revision(),
                report.namespace().tenant(),
                report.blocks(),
                report.objects(),
                report.bytes(),
                report.storedBytes(),
                report.orphans(),
                report.replaced(),
                report.tombstones(),
                report.badChecksums(),
                report.unreadable());
    }
}
