package io.kvcache.bench.cli;

import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.bench.suite.RunLength;
import io.kvcache.bench.suite.SuiteRunner;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// The options of a command that runs a [BenchmarkSuite], a picocli mixin: which questions, how long, and where the
/// answers go.
public final class SuiteOptions {

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec = CommandSpec.create();

    @Option(names = "--filter", paramLabel = "TEXT", description = "Only questions with this in their name.")
    private String filter = "";

    @Option(names = "--quick", description = "One short round: shows what is broken, not what is slow.")
    private boolean quick;

    @Option(names = "--json", description = "One JSON object a line instead of a table.")
    private boolean json;

    @Option(names = "--strict", description = "Exit with 1 when a budget is missed.")
    private boolean strict;

    @Option(names = "--record", description = "Also write page and lines to bench/results, with machine and commit.")
    private boolean recorded;

    /// Returns the suite with the questions that `--filter` selects.
    ///
    /// @throws ParameterException when it selects none
    public BenchmarkSuite filterSuite(BenchmarkSuite suite) {
        BenchmarkSuite chosen = suite.filterByName(filter);
        if (chosen.specs().isEmpty()) {
            String names = suite.specs().stream().map(BenchmarkSpec::name).collect(Collectors.joining(", "));
            throw invalidValue("--filter", filter, "in one of " + names);
        }
        return chosen;
    }

    /// Returns a runner that takes its time as `--quick` says, and reports its progress to standard error.
    public SuiteRunner createRunner() {
        return new SuiteRunner(quick ? RunLength.QUICK : RunLength.FULL, this::printError);
    }

    /// Prints the answers, and records them when `--record` asks for it.
    ///
    /// @return the exit code
    /// @throws IOException when the record cannot be written
    public int reportResults(BenchmarkSuite suite, List<BenchResult> answers) throws IOException {
        print((json ? new BenchReportFormat.JsonLines() : new BenchReportFormat.TextTable()).format(suite, answers));
        if (recorded) {
            printError("recorded in " + BenchResultWriter.write(spec, suite, answers));
        }
        return strict && !answers.stream().allMatch(BenchResult::isWithinThreshold) ? 1 : 0;
    }

    /// Prints the questions of a suite with their budgets.
    public void printSpecs(BenchmarkSuite suite) {
        print(String.format(Locale.ROOT, "%s: %s%n", suite.name(), suite.title()));
        suite.specs()
                .forEach(benchmarkSpec -> print(String.format(
                        Locale.ROOT,
                        "  %-18s %-14s %-10s %s%n",
                        benchmarkSpec.name(),
                        benchmarkSpec.threshold().describe(),
                        benchmarkSpec.unit(),
                        benchmarkSpec.text())));
    }

    /// Returns the error for a value that is not allowed.
    ParameterException invalidValue(String option, String value, String allowed) {
        return new ParameterException(
                spec.commandLine(), spec.qualifiedName() + ": " + option + " is '" + value + "', must be: " + allowed);
    }

    /// Writes a line to standard error.
    void printError(String text) {
        PrintWriter errors = spec.commandLine().getErr();
        errors.println(spec.qualifiedName() + ": " + text);
        errors.flush();
    }

    /// Writes to standard output.
    void print(String text) {
        PrintWriter out = spec.commandLine().getOut();
        out.print(text);
        out.flush();
    }
}
