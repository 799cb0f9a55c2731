package io.kvcache.engines.cli;

import io.kvcache.bench.cli.SuiteOptions;
import io.kvcache.bench.suite.BenchmarkSuite;
import java.io.IOException;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache engines bench`: what the store saves an inference engine, as figures beside their budgets.
@Command(
        name = "bench",
        description = "Measure inference engines with the store and without against the budgets.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class EngineBenchCommand implements Callable<Integer> {

    @Mixin
    private final SuiteOptions options = new SuiteOptions();

    @Option(names = "--list", description = "Print the questions and their budgets, and measure nothing.")
    private boolean listed;

    @Override
    public Integer call() throws IOException {
        BenchmarkSuite chosen = options.filterSuite(EngineSuite.suite());
        if (listed) {
            options.printSpecs(chosen);
            return 0;
        }
        return options.reportResults(chosen, options.createRunner().run(chosen));
    }
}
