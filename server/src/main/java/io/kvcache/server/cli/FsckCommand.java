package io.kvcache.server.cli;

import io.kvcache.tiers.directory.DirectoryOptions;
import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.directory.DiskDirectoryException;
import io.kvcache.tiers.disk.AuditReport;
import io.kvcache.tiers.disk.LogAudit;
import io.kvcache.tiers.disk.LogAudit.Scope;
import java.io.PrintWriter;
import java.nio.file.Path;
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
}
