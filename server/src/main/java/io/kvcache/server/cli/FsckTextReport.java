package io.kvcache.server.cli;

import io.kvcache.tiers.disk.AuditReport;
import io.kvcache.tiers.disk.AuditReport.NamespaceReport;
import io.kvcache.tiers.disk.AuditReport.RegionState;
import io.kvcache.tiers.disk.LogHeader;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;

/// The result of an audit as text for people.
final class FsckTextReport {

    private static final String REGION_ROW = "%10s  %8s  %10s  %12s  %6s  %12s  %12s";
    private static final String NAMESPACE_ROW = "%10s  %10s  %10s  %10s  %8s  %8s  %10s  %8s  %s";

    private final PrintWriter out;
    private final AuditReport report;

    FsckTextReport(PrintWriter out, AuditReport report) {
        this.out = out;
        this.report = report;
    }

    /// Prints the contents of the superblock.
    void printSuperblock() {
        print(
                "format version %d, %s in %,d regions of %s; %d of 2 superblocks sound, written %,d times",
                LogHeader.FORMAT_VERSION,
                formatSize(report.geometry().deviceBytes()),
                report.geometry().regions(),
                formatSize(report.geometry().regionBytes()),
                report.intactCopies(),
                report.superblocks());
        print("the store's disks when one last came or went: %d, generation %,d", report.disks(), report.generation());
        print("");
    }

    /// Regions by state.
    void printRegions() {
        print(REGION_ROW, "regions", "state", "entries", "bytes", "full", "oldest", "newest");
        for (RegionState state : RegionState.values()) {
            FsckJsonReport.RegionSummary regionSummary = FsckJsonReport.sumRegions(report, state);
            if (regionSummary.count() > 0) {
                double full = (double) regionSummary.bytes()
                        / regionSummary.count()
                        / report.geometry().regionBytes();
                print(
                        REGION_ROW,
                        formatNumber(regionSummary.count()),
                        state.name().toLowerCase(Locale.ROOT),
                        formatNumber(regionSummary.entries()),
                        formatSize(regionSummary.bytes()),
                        String.format(Locale.ROOT, "%.0f %%", 100 * full),
                        formatEpoch(regionSummary.oldestLife()),
                        formatEpoch(regionSummary.newestLife()));
            }
        }
        print("Oldest and newest: which opening began the region, and its number in that opening.");
        if (report.count(RegionState.DAMAGED) > 0) {
            print("Damaged: the trailer is; what was found was found by the heads of groups.");
        }
        if (report.count(RegionState.FORGOTTEN) > 0) {
            print("Forgotten: entries are lost that may have deleted or replaced what it holds.");
        }
        print("");
    }

    /// Prints the valid blocks, by namespace.
    void printNamespaces() {
        List<NamespaceReport> all = report.namespaces();
        print(
                NAMESPACE_ROW,
                "blocks",
                "objects",
                "bytes",
                "on disk",
                "orphans",
                "replaced",
                "tombstones",
                "bad",
                "namespace");
        for (NamespaceReport each : all) {
            print(
                    NAMESPACE_ROW,
                    formatNumber(each.blocks()),
                    formatNumber(each.objects()),
                    formatSize(each.bytes()),
                    formatSize(each.storedBytes()),
                    formatNumber(each.orphans()),
                    formatNumber(each.replaced()),
                    formatNumber(each.tombstones()),
                    formatNumber(each.corruptEntries()),
                    each.namespace());
        }
        print("");
    }

    /// Prints whether the directory is sound.
    void printVerdict(boolean repaired) {
        long checksums = report.namespaces().stream()
                .mapToLong(NamespaceReport::badChecksums)
                .sum();
        long unreadable = report.namespaces().stream()
                .mapToLong(NamespaceReport::unreadable)
                .sum();
        if (report.torn() > 0) {
            print("%,d not whole, in regions without a trailer; no opening takes them", report.torn());
        }
        if (report.invalid() > 0) {
            print("%,d entries cannot be right; no opening takes them", report.invalid());
        }
        if (report.lost() > 0) {
            print(
                    "%,d entries are lost that were durable: their metadata is damaged;"
                            + " the next opening forgets %,d regions, as what they hold may have been deleted or replaced by what is lost",
                    report.lost(), report.discardedRegions());
        }
        if (report.missingRegions() > 0) {
            print(
                    "%,d regions are lost that were durable: their trailers and first heads are damaged;"
                            + " the next opening forgets %,d older regions, as what they hold may have been deleted or replaced",
                    report.missingRegions(), report.discardedRegions());
        }
        printDamagedMetadata();
        if (report.isIntact()) {
            print("clean: every block and object has its checksum");
        } else if (report.corruptEntries() == 0) {
            String which = report.lost() + report.missingRegions() > 0 ? " that is left" : "";
            print("every block and object" + which + " has its checksum");
        } else {
            print(
                    "%,d bad: %,d with a wrong checksum, %,d unreadable; a store never serves them",
                    report.corruptEntries(), checksums, unreadable);
        }
        if (repaired) {
            print("repaired: %,d regions have a new trailer", report.repairedRegions());
            if (report.damagedCopy() > 0) {
                print(copy() + (report.superblockRepaired() ? " is written anew" : " cannot be written"));
            }
        } else if (report.corruptEntries() > 0) {
            print("fsck --repair drops them; no older value of a bad object comes back");
        }
    }

    /// Metadata that is damaged while nothing is lost.
    private void printDamagedMetadata() {
        if (report.damagedCopy() > 0) {
            print(
                    "%s is damaged (MiB %d of the file); copy %d serves in its place."
                            + " fsck --repair writes it anew, and so does the next opening",
                    copy(), report.damagedCopy(), 3 - report.damagedCopy());
        }
        long trailers = report.count(RegionState.DAMAGED);
        if (trailers > 0) {
            print("%,d regions have a damaged trailer; fsck --repair writes it anew", trailers);
        }
    }

    private String copy() {
        return "copy " + report.damagedCopy() + " of 2 of the superblock";
    }

    private static String formatEpoch(long life) {
        return life == 0 ? "-" : (life >>> Integer.SIZE) + "." + (int) life;
    }

    private static String formatNumber(long number) {
        return String.format(Locale.ROOT, "%,d", number);
    }

    private static String formatSize(long bytes) {
        return bytes == 0 ? "0 B" : new ByteSizeText(bytes).toString();
    }

    @SuppressWarnings("AnnotateFormatMethod") // the annotation lives in a library that nothing else here needs
    private void print(String format, Object... values) {
        out.println(String.format(Locale.ROOT, format, values).stripTrailing());
    }
}
