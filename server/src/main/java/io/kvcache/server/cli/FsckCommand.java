package io.kvcache.server.cli;

import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.directory.DiskDirectory.DirectoryOptions;
import io.kvcache.tiers.directory.DiskDirectoryException;
import io.kvcache.tiers.disk.AuditReport;
import io.kvcache.tiers.disk.AuditReport.NamespaceReport;
import io.kvcache.tiers.disk.AuditReport.RegionReport;
import io.kvcache.tiers.disk.AuditReport.RegionState;
import io.kvcache.tiers.disk.LogAudit;
import io.kvcache.tiers.disk.LogAudit.Scope;
import io.kvcache.tiers.disk.LogHeader;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache fsck`: reads every block of a disk tier and verifies it.
@Command(
        name = "fsck",
        description = "Read every block of a disk tier that no process has open, and verify it.",
        footer = {
            "",
            "Exit code: 0 all is sound, 1 blocks, objects or metadata are bad or lost, even if repaired now,",
            "2 the directory cannot be checked."
        },
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class FsckCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Parameters(paramLabel = "DIR", description = "The directory of the tier.")
    private Path folder = Path.of("");

    @Option(
            names = "--repair",
            description = "Drop bad blocks and objects, and rewrite damaged trailers and superblocks.")
    private boolean repair;

    @Option(names = "--json", description = "Print one JSON object instead of text.")
    private boolean json;

    @Override
    public Integer call() {
        AuditReport report = audit(spec, folder, repair ? Scope.REPAIR : Scope.BLOCKS);
        print(spec, report, json, text -> {
            text.printRegions();
            text.printNamespaces();
            text.printVerdict(repair);
        });
        return report.isIntact() ? 0 : 1;
    }

    /// Audits the tier.
    ///
    /// @throws ParameterException when the directory is rejected: it holds no tier, or another process has it open
    private static AuditReport audit(CommandSpec command, Path folder, Scope scope) {
        try (DiskDirectory directory = DiskDirectory.openExisting(folder, DirectoryOptions.defaults());
                ProgressLine progressLine =
                        new ProgressLine(command.commandLine().getErr())) {
            return LogAudit.run(
                    directory.device(), scope, (done, all) -> progressLine.update("region " + done + " of " + all));
        } catch (DiskDirectoryException refused) {
            String text = command.qualifiedName() + ": " + refused.getMessage();
            throw new ParameterException(command.commandLine(), text, refused);
        }
    }

    private static void print(CommandSpec command, AuditReport report, boolean json, Consumer<FsckTextReport> page) {
        PrintWriter out = command.commandLine().getOut();
        if (json) {
            out.println(JsonMapper.builder().build().writeValueAsString(FsckJsonReport.of(report)));
        } else {
            page.accept(new FsckTextReport(out, report));
        }
        out.flush();
    }

    /// `kvcache inspect`: what is in a disk tier, without reading its blocks.
    @Command(
            name = "inspect",
            description =
                    "Show the contents of a disk tier that no process has open: format, regions, namespaces, age.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class InspectCommand implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Parameters(paramLabel = "DIR", description = "The directory of the tier.")
        private Path folder = Path.of("");

        @Option(names = "--json", description = "Print one JSON object instead of text.")
        private boolean json;

        @Override
        public Integer call() {
            print(spec, audit(spec, folder, Scope.TABLES), json, text -> {
                text.printSuperblock();
                text.printRegions();
                text.printNamespaces();
            });
            return 0;
        }
    }

    /// The result of an audit as text for people.
    private static final class FsckTextReport {

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
            print(
                    "the store's disks when one last came or went: %d, generation %,d",
                    report.disks(), report.generation());
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

    /// The result of an audit as one JSON object. Programs rely on the names.
    private record FsckJsonReport(
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
}
