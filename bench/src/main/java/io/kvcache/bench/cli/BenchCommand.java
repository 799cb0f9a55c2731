package io.kvcache.bench.cli;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Effort;
import io.kvcache.bench.suite.Question;
import io.kvcache.bench.suite.Suite;
import io.kvcache.bench.suite.SuiteCatalogue;
import io.kvcache.bench.suite.SuiteRunner;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `kvcache bench`: answers the questions of a suite on this machine, each beside its budget and a reference
/// measured in the same run.
@Command(
        name = "bench",
        description = "Measure this machine against the budgets: bench list names the suites.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class BenchCommand implements Callable<Integer> {

    private static final Path RECORDS = Path.of("bench", "results");

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Parameters(paramLabel = "SUITE", description = "A suite to run, or list.")
    private String suite = "";

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

    @Override
    public Integer call() throws IOException {
        if (suite.equals("list")) {
            SuiteCatalogue.all().forEach(this::list);
            return 0;
        }
        Suite chosen = chosen();
        List<Answer> answers = run(chosen);
        print((json ? new BenchReport.Lines() : new BenchReport.Table()).of(chosen, answers));
        if (recorded) {
            BenchRecord target = new BenchRecord(RECORDS, command());
            Path page = target.write(chosen, answers, LocalDate.now(ZoneId.systemDefault()));
            spec.commandLine().getErr().println("kvcache bench: recorded in " + page);
        }
        return strict && !answers.stream().allMatch(Answer::ok) ? 1 : 0;
    }

    private List<Answer> run(Suite chosen) {
        PrintWriter errors = spec.commandLine().getErr();
        return new SuiteRunner(quick ? Effort.QUICK : Effort.FULL, step -> {
                    errors.println("kvcache bench: " + step);
                    errors.flush();
                })
                .run(chosen);
    }

    private Suite chosen() {
        Suite named = SuiteCatalogue.named(suite)
                .orElseThrow(() -> mistake("SUITE", suite, SuiteCatalogue.names() + ", list"));
        Suite chosen = named.filtered(filter);
        if (chosen.questions().isEmpty()) {
            throw mistake(
                    "--filter",
                    filter,
                    "in one of "
                            + String.join(
                                    ", ",
                                    named.questions().stream()
                                            .map(Question::name)
                                            .toList()));
        }
        return chosen;
    }

    private ParameterException mistake(String option, String value, String allowed) {
        return new ParameterException(
                spec.commandLine(), "kvcache bench: " + option + " is '" + value + "', must be: " + allowed);
    }

    private void list(Suite each) {
        print(String.format(Locale.ROOT, "%s: %s%n", each.name(), each.title()));
        each.questions()
                .forEach(question -> print(String.format(
                        Locale.ROOT,
                        "  %-18s %-14s %-10s %s%n",
                        question.name(),
                        question.budget().describe(),
                        question.unit(),
                        question.text())));
    }

    private String command() {
        List<String> typed = spec.root().commandLine().getParseResult().originalArgs();
        return "kvcache " + String.join(" ", typed);
    }

    private void print(String text) {
        PrintWriter out = spec.commandLine().getOut();
        out.print(text);
        out.flush();
    }
}
