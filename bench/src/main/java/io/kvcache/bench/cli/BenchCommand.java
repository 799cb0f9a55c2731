package io.kvcache.bench.cli;

import io.kvcache.bench.disk.DiskPlaces;
import io.kvcache.bench.disk.MissingToolException;
import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Effort;
import io.kvcache.bench.suite.Question;
import io.kvcache.bench.suite.Suite;
import io.kvcache.bench.suite.SuiteCatalogue;
import io.kvcache.bench.suite.SuiteRunner;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
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
        subcommands = {
            ServerBenchCommand.class,
            TransportBenchCommand.class,
            GpuBenchCommand.class,
            OpaqueBenchCommand.class,
            PairsBenchCommand.class
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
            print("server: the cache server beside redis-server; see bench server --help\n");
            print("transport: the remote cache beside a bare responder; see bench transport --help\n");
            print("opaque: a trace as LMCache plays it beside native blocks; see bench opaque --help\n");
            print("pairs: this build beside another one, in turns; see bench pairs --help\n");
            print("gpu: blocks, pages and kernels on a GPU beside bare copies; see bench gpu --help\n");
            return 0;
        }
        Suite chosen = chosen();
        if (folder != null && !chosen.movesBytes()) {
            throw new ParameterException(spec.commandLine(), "kvcache bench: only disk takes a DIR");
        }
        return chosen.movesBytes() ? answerOnFiles(chosen) : report(chosen, runner().run(chosen));
    }

    private int answerOnFiles(Suite chosen) throws IOException {
        try {
            Path disk = folder == null ? Path.of(System.getProperty("java.io.tmpdir")) : folder;
            DiskPlaces places = DiskPlaces.find(disk);
            places.remarks().forEach(this::say);
            Suite possible = chosen.within(places.folders().keySet());
            return report(possible, runner().run(possible, places));
        } catch (MissingToolException missing) {
            throw new ParameterException(spec.commandLine(), "kvcache bench: " + missing.getMessage(), missing);
        }
    }

    private int report(Suite chosen, List<Answer> answers) throws IOException {
        print((json ? new BenchReport.Lines() : new BenchReport.Table()).of(chosen, answers));
        if (recorded) {
            say("recorded in " + BenchRecord.write(spec, chosen, answers));
        }
        return strict && !answers.stream().allMatch(Answer::ok) ? 1 : 0;
    }

    private SuiteRunner runner() {
        return new SuiteRunner(quick ? Effort.QUICK : Effort.FULL, this::say);
    }

    private void say(String text) {
        PrintWriter errors = spec.commandLine().getErr();
        errors.println("kvcache bench: " + text);
        errors.flush();
    }

    private Suite chosen() {
        Suite named = SuiteCatalogue.named(suite)
                .orElseThrow(() -> mistake("SUITE", suite, SuiteCatalogue.names() + ", server, transport, gpu, list"));
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

    private void print(String text) {
        PrintWriter out = spec.commandLine().getOut();
        out.print(text);
        out.flush();
    }
}
