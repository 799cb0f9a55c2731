package io.kvcache.bench.cli;

import io.kvcache.bench.cli.FigureOptions.DurationConverter;
import io.kvcache.bench.figure.RunnableBuild;
import io.kvcache.bench.server.ServerBuildBenchmark;
import io.kvcache.bench.suite.BuildComparison;
import io.kvcache.bench.suite.BuildComparison.BuildBenchmark;
import io.kvcache.bench.suite.BuildComparison.SpeedRatio;
import io.kvcache.bench.suite.FigureBuildBenchmark;
import io.kvcache.planner.cli.CommandIo;
import io.kvcache.planner.report.MachineInfo;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache bench pairs`: whether this build is slower than another one, by runs in turns.
@Command(
        name = "pairs",
        description = "Compare two builds in turns; exits with 1 when the new one is slower.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class BuildComparisonCommand implements Callable<Integer> {

    private static final int MAX_PAIRS = 1000;
    private static final int MIN_PAIRS = 9;

    @Mixin
    private final CommandIo io = new CommandIo();

    @Option(
            names = "--old",
            paramLabel = "PLACE",
            required = true,
            description = "A checkout that was built, or the one jar of a server, for the suite server.")
    private Path older = Path.of("");

    @Option(names = "--new", paramLabel = "PLACE", description = "Likewise; this build when not given.")
    private @Nullable Path newer;

    @Option(
            names = "--suite",
            paramLabel = "NAME",
            split = ",",
            description = "Suites: core, server, transport, disk. Default: core,server.")
    private List<String> suites = List.of("core", "server");

    @Option(
            names = "--pairs",
            paramLabel = "N",
            defaultValue = "9",
            description = "Runs of each build for a cell. Default: ${DEFAULT-VALUE}.")
    private int pairs;

    @Option(names = "--cells", paramLabel = "REGEX", description = "Only cells whose names match this.")
    private String cells = "";

    @Option(
            names = "--time",
            paramLabel = "TIME",
            converter = DurationConverter.class,
            defaultValue = "600ms",
            description = "Duration of each load of the server suite. Default: ${DEFAULT-VALUE}.")
    private Duration time = Duration.ZERO;

    @Option(names = "--json", description = "One JSON object a cell instead of a table.")
    private boolean json;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (pairs < 1 || pairs > MAX_PAIRS) {
            throw invalidValue("--pairs", String.valueOf(pairs), "1 to " + MAX_PAIRS);
        }
        Map<BuildBenchmark, Set<String>> chosen = chosen();
        if (pairs < MIN_PAIRS) {
            io.printError("fewer than " + MIN_PAIRS + " pairs decide nothing: chance makes cells slower");
        }
        RunnableBuild other = RunnableBuild.locate(older);
        RunnableBuild ours = newer == null ? RunnableBuild.running() : RunnableBuild.locate(newer);
        BuildComparison comparison = new BuildComparison(other, ours, pairs, io::printError);
        boolean ok = true;
        for (Map.Entry<BuildBenchmark, Set<String>> each : chosen.entrySet()) {
            io.printError(each.getKey().suiteName() + ", load "
                    + MachineInfo.current().load());
            BuildComparison.SuiteComparison suiteComparison = comparison.run(each.getKey(), each.getValue());
            io.print(json ? lines(suiteComparison) : table(suiteComparison));
            ok &= suiteComparison.isNotSlower();
        }
        io.printError("load " + MachineInfo.current().load() + " at the end");
        return ok ? 0 : 1;
    }

    private Map<BuildBenchmark, Set<String>> chosen() {
        List<BuildBenchmark> all = List.of(
                FigureBuildBenchmark.core(),
                new ServerBuildBenchmark(time),
                FigureBuildBenchmark.transport(),
                FigureBuildBenchmark.disk());
        String known = all.stream().map(BuildBenchmark::suiteName).collect(Collectors.joining(", "));
        for (String name : suites) {
            if (all.stream().noneMatch(trial -> trial.suiteName().equals(name))) {
                throw invalidValue("--suite", name, "one of " + known);
            }
        }
        List<BuildBenchmark> trials =
                all.stream().filter(trial -> suites.contains(trial.suiteName())).toList();
        Pattern wanted = pattern();
        Map<BuildBenchmark, Set<String>> chosen = new LinkedHashMap<>();
        for (BuildBenchmark trial : trials) {
            Set<String> found = trial.cellNames().stream()
                    .filter(cell -> wanted.matcher(cell).find())
                    .collect(Collectors.toCollection(LinkedHashSet::new));
            if (!found.isEmpty()) {
                chosen.put(trial, found);
            }
        }
        if (chosen.isEmpty()) {
            throw invalidValue(
                    "--cells",
                    cells,
                    "found in one of "
                            + trials.stream()
                                    .flatMap(trial -> trial.cellNames().stream())
                                    .collect(Collectors.joining(", ")));
        }
        return chosen;
    }

    private Pattern pattern() {
        try {
            return Pattern.compile(cells);
        } catch (PatternSyntaxException wrong) {
            throw invalidValue("--cells", cells, "a regular expression: " + wrong.getDescription());
        }
    }

    private static String table(BuildComparison.SuiteComparison suiteComparison) {
        StringBuilder text = new StringBuilder(String.format(
                Locale.ROOT, "%-18s %8s %18s %6s%n", suiteComparison.suite(), "new/old", "90 % interval", "pairs"));
        suiteComparison.first().forEach(ratio -> text.append(line(ratio, "")));
        suiteComparison.repeat().forEach(ratio -> text.append(line(ratio, " again")));
        for (String cell : suiteComparison.missing()) {
            text.append(String.format(Locale.ROOT, "%-18s one of the builds does not have it%n", cell));
        }
        text.append(String.format(
                Locale.ROOT,
                "%-18s %8.3f  geometric mean, wanted >= %.2f: %s%n",
                suiteComparison.suite(),
                suiteComparison.meanRatio(),
                SpeedRatio.MIN_MEAN,
                suiteComparison.meanRatio() >= SpeedRatio.MIN_MEAN ? "ok" : "SLOWER"));
        String slower = String.join(", ", suiteComparison.slowerCells());
        text.append(String.format(
                Locale.ROOT,
                "%-18s %s%n",
                suiteComparison.suite(),
                slower.isEmpty()
                        ? "no cell is slower: under " + SpeedRatio.MIN_MEDIAN + " with the whole interval in two runs"
                        : "SLOWER in two runs: " + slower));
        return text.toString();
    }

    private static String line(SpeedRatio ratio, String run) {
        return String.format(
                Locale.ROOT,
                "%-18s %8.3f %8.3f to %6.3f %6d%s%s%n",
                ratio.cell(),
                ratio.median(),
                ratio.low(),
                ratio.high(),
                ratio.pairs(),
                run,
                ratio.isSlower() ? " slower" : "");
    }

    /// A line of `--json`. The names of the fields are what programs rely on.
    ///
    /// @param run 1, or 2 for a cell that was slower in the first
    private record JsonLine(
            String suite, String cell, int run, int pairs, double median, double low, double high, boolean slower) {}

    private static String lines(BuildComparison.SuiteComparison suiteComparison) {
        JsonMapper mapper = JsonMapper.builder().build();
        List<String> lines = new ArrayList<>();
        Stream.of(1, 2)
                .forEach(run -> (run == 1 ? suiteComparison.first() : suiteComparison.repeat())
                        .forEach(ratio -> lines.add(mapper.writeValueAsString(new JsonLine(
                                suiteComparison.suite(),
                                ratio.cell(),
                                run,
                                ratio.pairs(),
                                ratio.median(),
                                ratio.low(),
                                ratio.high(),
                                ratio.isSlower())))));
        lines.add(mapper.writeValueAsString(Map.of(
                "suite",
                suiteComparison.suite(),
                "geometricMean",
                suiteComparison.meanRatio(),
                "ok",
                suiteComparison.isNotSlower())));
        return String.join("\n", lines) + "\n";
    }

    private ParameterException invalidValue(String option, String value, String allowed) {
        return io.usageError(option + " is '" + value + "', must be " + allowed);
    }
}
