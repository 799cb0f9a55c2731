package io.kvcache.server.cli;

import io.kvcache.tiers.disk.AuditReport;
import io.kvcache.tiers.disk.LogAudit.Scope;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache fsck`: reads every block of a disk tier and verifies it.
@Command(
        name = "fsck",
        description = "Read every block of a disk tier that nobody has open, and verify it.",
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
            description =
                    "Drop what is bad, so that it is not found again; and write damaged trailers and superblocks anew.")
    private boolean repair;

    @Option(names = "--json", description = "One JSON object instead of a page.")
    private boolean json;

    @Override
    public Integer call() {
        AuditReport report = TierDirectory.audit(spec, folder, repair ? Scope.REPAIR : Scope.BLOCKS);
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(JsonMapper.builder().build().writeValueAsString(FsckJsonReport.of(report)));
        } else {
            FsckTextReport text = new FsckTextReport(out, report);
            text.printRegions();
            text.printNamespaces();
            text.printVerdict(repair);
        }
        out.flush();
        return report.isIntact() ? 0 : 1;
    }
}
