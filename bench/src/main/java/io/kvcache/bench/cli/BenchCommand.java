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
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `kvcache bench`: answers the questions of a suite on this machine, each beside its budget and a reference
/// measured in the same run.
@Command(
        name = "bench",
        description = "Measure this machine against the budgets: bench list names the suites.",
        mixinStandardHelpOptions = true,
        subcommands = {
            ServerBenchCommand.class,
            TransportBenchCommand.class,
            GpuBenchCommand.class,
            BuildComparisonCommand.class
        },
        sortOptions = false)
final class BenchCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Parameters(index = "0", arity = "0..1", paramLabel = "SUITE", description = "A suite to run, or list.")
    private String suite = "";

    @Parameters(
            index = "1",
            arity = "0..1",
            paramLabel = "DIR",
            description = "For disk: a directory on the disk to measure, else the system's for temporary files.")
    private @Nullable Path folder;

    @Mixin
    private final SuiteOptions options = new SuiteOptions();

    @Override
    public Integer call() throws IOException {
        if (suite.equals("list")) {
            SuiteCatalogue.all().forEach(options::printSpecs);
            options.print("server: the cache server beside redis-server; see bench server --help\n");
            options.print("transport: the remote cache beside a bare responder; see bench transport --help\n");
            options.print("pairs: this build beside another one, in turns; see bench pairs --help\n");
            options.print("gpu: blocks, pages and kernels on a GPU beside bare copies; see bench gpu --help\n");
            return 0;
        }
        BenchmarkSuite chosen = chosen();
        if (folder != null && !chosen.needsFiles()) {
            throw new ParameterException(spec.commandLine(), "kvcache bench: only disk takes a DIR");
        }
        return chosen.needsFiles()
                ? runOnFiles(chosen)
                : options.reportResults(chosen, options.createRunner().run(chosen));
    }

    private int runOnFiles(BenchmarkSuite chosen) throws IOException {
        try {
            Path disk = folder == null ? Path.of(System.getProperty("java.io.tmpdir")) : folder;
            DiskBenchDirs places = DiskBenchDirs.find(disk);
            places.remarks().forEach(options::printError);
            BenchmarkSuite possible = chosen.onMedia(places.folders().keySet());
            return options.reportResults(possible, options.createRunner().run(possible, places));
        } catch (MissingToolException missing) {
            throw new ParameterException(spec.commandLine(), "kvcache bench: " + missing.getMessage(), missing);
        }
    }

    private BenchmarkSuite chosen() {
        return options.filterSuite(SuiteCatalogue.named(suite)
                .orElseThrow(() -> options.invalidValue(
                        "SUITE", suite, SuiteCatalogue.names() + ", server, transport, gpu, list")));
    }
}
