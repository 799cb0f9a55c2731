package io.kvcache.bench.cli;

import io.kvcache.bench.disk.DiskBenchDirs;
import io.kvcache.bench.disk.FioRunner.MissingToolException;
import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.bench.suite.SuiteCatalogue;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `kvcache bench`: answers the questions of a suite on this machine, each beside its budget and a reference
/// measured in the same run.
@Command(
        name = "bench",
        description = "Measure this machine against the budgets: bench list names the suites.",
        mixinStandardHelpOptions = true,
        subcommands = {
            ServerBenchCommand.class,
            TransportBenchCommand.class,
            ClusterBenchCommand.class,
            GpuBenchCommand.class,
            BuildComparisonCommand.class
        },
        sortOptions = false)
final class BenchCommand implements Callable<Integer> {

    private static final String OTHER_SUITES = """
            server: the cache server beside redis-server; see bench server --help
            transport: the remote cache beside a bare responder; see bench transport --help
            cluster: a trace through a cluster whose servers die, stop, leave and join; see bench cluster --help
            pairs: this build beside another one, in turns; see bench pairs --help
            gpu: blocks, pages and kernels on a GPU beside bare copies; see bench gpu --help
            peers: Redis, Valkey, files and Mooncake's store beside this one; see bench peers --help
            """;

    @Parameters(index = "0", arity = "0..1", paramLabel = "SUITE", description = "A suite to run, or list.")
    private String suite = "";

    @Parameters(
            index = "1",
            arity = "0..1",
            paramLabel = "DIR",
            description = "For disk: a directory on the disk to measure, else the system's for temporary files.")
    private @Nullable Path folder;

    @Option(names = "--filter", paramLabel = "TEXT", description = "Only questions with this in their name.")
    private String filter = "";

    @Mixin
    private final SuiteOptions options = new SuiteOptions();

    @Override
    public Integer call() throws IOException {
        if (suite.equals("list")) {
            SuiteCatalogue.all().forEach(options::printSpecs);
            options.io().print(OTHER_SUITES);
            return 0;
        }
        BenchmarkSuite chosen = options.filterSuite(
                SuiteCatalogue.named(suite)
                        .orElseThrow(() -> options.io()
                                .usageError("SUITE is '" + suite + "', must be: " + SuiteCatalogue.names()
                                        + ", server, transport, cluster, gpu, peers, list")),
                filter);
        if (folder != null && !chosen.needsFiles()) {
            throw options.io().usageError("only disk takes a DIR");
        }
        return chosen.needsFiles()
                ? runOnFiles(chosen)
                : options.reportResults(chosen, options.createRunner().run(chosen));
    }

    private int runOnFiles(BenchmarkSuite chosen) throws IOException {
        try {
            Path disk = folder == null ? Path.of(System.getProperty("java.io.tmpdir")) : folder;
            DiskBenchDirs places = DiskBenchDirs.find(disk);
            places.remarks().forEach(options.io()::printError);
            BenchmarkSuite possible = chosen.onMedia(places.folders().keySet());
            return options.reportResults(possible, options.createRunner().run(possible, places));
        } catch (MissingToolException missing) {
            throw options.io().usageError(missing);
        }
    }
}
