package io.kvcache.bench.cli;

import io.kvcache.bench.disk.DiskSuite;
import io.kvcache.bench.disk.LayerSuite;
import io.kvcache.bench.disk.TierOpenTiming;
import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import io.kvcache.bench.server.ServerSuite;
import io.kvcache.bench.suite.BlockCodecSuite;
import io.kvcache.bench.suite.CoreSuite;
import io.kvcache.bench.suite.PolicySuite;
import io.kvcache.bench.transport.TransportSuite;
import io.kvcache.planner.cli.CommandIo;
import io.kvcache.planner.report.MachineInfo;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `kvcache bench`: measures the figures of a suite on this machine, each beside its budget.
@Command(
        name = "bench",
        description = "Measure this machine against the budgets: bench list names the suites.",
        mixinStandardHelpOptions = true,
        subcommands = {ClusterBenchCommand.class, GpuBenchCommand.class, BuildComparisonCommand.class},
        sortOptions = false)
final class BenchCommand implements Callable<Integer> {

    private static final List<Suite> SUITES = List.of(
            CoreSuite.suite(),
            BlockCodecSuite.suite(),
            DiskSuite.suite(),
            LayerSuite.suite(),
            TierOpenTiming.suite(),
            PolicySuite.suite(),
            ServerSuite.suite(),
            TransportSuite.suite());

    private static final String OTHER_COMMANDS = """
            pairs: this build beside another one, in turns; see bench pairs --help
            peers: Redis, Valkey, files and Mooncake's store beside this one; see bench peers --help
            """;

    @Parameters(index = "0", arity = "0..1", paramLabel = "SUITE", description = "A suite to run, or list.")
    private String name = "";

    @Parameters(
            index = "1",
            arity = "0..1",
            paramLabel = "DIR",
            description = "For disk, reopen: a directory on the disk to measure. Default: that of temporary files.")
    private @Nullable Path folder;

    @Option(names = "--filter", paramLabel = "TEXT", description = "Only figures with this in their name.")
    private String filter = "";

    @Option(
            names = "--part",
            paramLabel = "NAME",
            split = ",",
            description = "Only these parts of server or transport; bench list names them.")
    private List<String> parts = List.of();

    @Mixin
    private final FigureOptions options = new FigureOptions();

    @Override
    public Integer call() throws IOException, InterruptedException {
        CommandIo io = options.io();
        if (name.equals("list")) {
            list();
            return 0;
        }
        Suite suite = SUITES.stream()
                .filter(each -> each.name().equals(name))
                .findFirst()
                .orElseThrow(() -> io.usageError("SUITE is '" + name + "', must be: "
                        + SUITES.stream().map(Suite::name).collect(Collectors.joining(", "))
                        + ", cluster, gpu, pairs, peers, list"));
        if (!filter.isEmpty()) {
            options.checkFilter(suite, filter);
        }
        Set<String> wanted = new LinkedHashSet<>();
        for (String part : parts) {
            wanted.add(part.toLowerCase(Locale.ROOT));
            if (!suite.parts().contains(part.toLowerCase(Locale.ROOT))) {
                throw io.usageError("--part is '" + part + "', must be one of: "
                        + (suite.parts().isEmpty()
                                ? "none, as " + name + " has none"
                                : String.join(", ", suite.parts())));
            }
        }
        if (folder != null && !List.of("disk", "reopen").contains(name)) {
            throw io.usageError("only disk and reopen take a DIR");
        }
        Path files = folder == null ? Path.of(System.getProperty("java.io.tmpdir")) : folder;
        io.printError("load " + MachineInfo.current().load());
        List<Figure> figures =
                suite.measurement().measure(new Suite.Run(options.isQuick(), filter, wanted, files, io::printError));
        io.printError("load " + MachineInfo.current().load() + " at the end");
        return options.print(name, suite.title(), figures);
    }

    private void list() {
        for (Suite suite : SUITES) {
            String parts = suite.parts().isEmpty() ? "" : "; parts: " + String.join(", ", suite.parts());
            options.printBudgets(suite.name(), suite.title() + parts);
        }
        options.printBudgets(
                "cluster",
                "a trace through a cluster whose servers die, stop, leave and join; see bench cluster --help");
        options.printBudgets("gpu", "blocks, pages and kernels on a GPU beside bare copies; see bench gpu --help");
        options.io().print(OTHER_COMMANDS);
    }
}
