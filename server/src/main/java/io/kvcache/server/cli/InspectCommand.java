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

/// `kvcache inspect`: what is in a disk tier, without reading its blocks.
@Command(
        name = "inspect",
        description = "Say what is in a disk tier that nobody has open: format, regions, namespaces, age.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class InspectCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Parameters(paramLabel = "DIR", description = "The directory of the tier.")
    private Path folder = Path.of("");

    @Option(names = "--json", description = "One JSON object instead of a page.")
    private boolean json;

    @Override
    public Integer call() {
        AuditReport report = TierDirectory.audit(spec, folder, Scope.TABLES);
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(JsonMapper.builder().build().writeValueAsString(FsckJsonReport.of(report)));
        } else {
            FsckTextReport text = new FsckTextReport(out, report);
            text.printSuperblock();
            text.printRegions();
            text.printNamespaces();
        }
        out.flush();
        return 0;
    }
}
