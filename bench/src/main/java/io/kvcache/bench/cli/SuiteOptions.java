package io.kvcache.bench.cli;

import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.SuiteRunner;
import io.kvcache.bench.suite.SuiteRunner.RunLength;
import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// The options of a command that measures, a picocli mixin: how long, and where the answers go.
public final class SuiteOptions {

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec = CommandSpec.create();

    @Option(names = "--quick", description = "Run one short round: it shows failures, not speed.")
    private boolean quick;

    @Option(names = "--json", description = "One JSON object a line instead of a table.")
    private boolean json;

    @Option(names = "--strict", description = "Exit with 1 when a budget is missed.")
    private boolean strict;

    @Option(names = "--record", description = "Also write page and lines to bench/results, with machine and commit.")
    private boolean recorded;

    CommandIo io() {
        return new CommandIo(spec);
    }

    boolean isQuick() {
        return quick;
    }

    boolean isJson() {
        return json;
    }

    /// Returns the suite with the questions whose name contains a text.
    ///
    /// @param filter as `--filter` has it
    /// @throws ParameterException when it selects none
    public BenchmarkSuite filterSuite(BenchmarkSuite suite, String filter) {
        BenchmarkSuite chosen = suite.filterByName(filter);
        if (chosen.specs().isEmpty()) {
            String names = suite.specs().stream().map(BenchmarkSpec::name).collect(Collectors.joining(", "));
            throw io().usageError("--filter is '" + filter + "', must be: in one of " + names);
        }
        return chosen;
    }

    /// Returns a runner that takes its time as `--quick` says, and reports its progress to standard error.
    public SuiteRunner createRunner() {
        return new SuiteRunner(quick ? RunLength.QUICK : RunLength.FULL, io()::printError);
    }

    /// Prints the answers, and records them when `--record` asks for it.
    ///
    /// @return the exit code
    /// @throws IOException when the record cannot be written
    public int reportResults(BenchmarkSuite suite, List<BenchResult> answers) throws IOException {
        BenchReport report = new BenchReport(suite, answers);
        io().print(json ? report.toJsonLines() : report.toTable());
        record(report);
        return exitCode(report);
    }

    /// Records the answers when `--record` asks for it.
    void record(BenchReport report) throws IOException {
        if (recorded) {
            io().printError("recorded in " + report.record("kvcache " + io().arguments()));
        }
    }

    int exitCode(BenchReport report) {
        return strict && !report.isWithinThresholds() ? 1 : 0;
    }

    /// Prints the questions of a suite with their budgets.
    public void printSpecs(BenchmarkSuite suite) {
        StringBuilder text = new StringBuilder(suite.name() + ": " + suite.title() + "\n");
        for (BenchmarkSpec question : suite.specs()) {
            text.append(String.format(
                    Locale.ROOT,
                    "  %-18s %-14s %-10s %s%n",
                    question.name(),
                    question.threshold().describe(),
                    question.unit(),
                    question.text()));
        }
        io().print(text.toString());
    }
}
