package io.kvcache.bench.cli;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.FigureBudgets;
import io.kvcache.bench.figure.Suite;
import io.kvcache.planner.cli.CommandIo;
import io.kvcache.planner.report.MachineInfo;
import io.kvcache.server.config.Units;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.IntSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;
import tools.jackson.databind.json.JsonMapper;

/// The options of a command that measures, a picocli mixin: how long, and where its figures go.
public final class FigureOptions {

    private static final Path RECORDS = Path.of("bench", "results");
    private static final JsonMapper JSON = JsonMapper.builder().build();

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

    /// Returns whether one short round is wanted.
    public boolean isQuick() {
        return quick;
    }

    /// Writes a line about the progress to standard error.
    public void printProgress(String step) {
        io().printError(step);
    }

    /// Checks `--filter`.
    ///
    /// @throws ParameterException when it selects no figure of a suite
    public void checkFilter(Suite suite, String filter) {
        Suite.Run run = Suite.Run.of(quick, filter, _ -> {});
        if (suite.figures().stream().noneMatch(run::wants)) {
            throw io().usageError("--filter is '" + filter + "', must be: "
                    + (suite.figures().isEmpty()
                            ? "empty, as " + suite.name() + " has parts"
                            : "in one of " + String.join(", ", suite.figures())));
        }
    }

    /// Prints the figures of a suite, and records them when `--record` asks for it.
    ///
    /// @return the exit code
    /// @throws IOException when the record cannot be written
    public int print(String suite, String title, List<Figure> figures) throws IOException {
        io().print(json ? jsonLines(suite, figures) : table(suite, figures));
        if (recorded) {
            io().printError("recorded in " + record(suite, title, figures));
        }
        return strict && !figures.stream().allMatch(figure -> FigureBudgets.isMet(suite, figure)) ? 1 : 0;
    }

    /// Prints the figures that a suite has, with budgets.
    public void printBudgets(String suite, String title) {
        io().print(suite + ": " + title + "\n" + FigureBudgets.list(suite));
    }

    private static String table(String suite, List<Figure> figures) {
        String row = "%-28s %10s %-10s  %-24s %10s %7s  %-14s %s%n";
        StringBuilder text = new StringBuilder(format(row, suite, "", "", "against", "", "ratio", "budget", ""));
        for (Figure figure : figures) {
            text.append(format(
                    row,
                    figure.name(),
                    number(figure.value()),
                    figure.unit(),
                    figure.against(),
                    figure.hasReference() ? number(figure.reference()) : "",
                    figure.hasReference() ? number(figure.ratio()) : "",
                    FigureBudgets.describe(suite, figure.name()),
                    verdict(suite, figure)));
        }
        return text.append(legend(figures)).toString();
    }

    /// One JSON object a line. The names of the fields are what programs rely on.
    private static String jsonLines(String suite, List<Figure> figures) {
        StringBuilder text = new StringBuilder();
        for (Figure figure : figures) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("name", figure.name());
            line.put("value", figure.value());
            line.put("unit", figure.unit());
            line.put("against", figure.against());
            line.put("againstValue", figure.reference());
            line.put("ratio", figure.ratio());
            line.put("budget", FigureBudgets.describe(suite, figure.name()));
            line.put("ok", FigureBudgets.isMet(suite, figure));
            line.put("runs", figure.rounds());
            text.append(JSON.writeValueAsString(line)).append('\n');
        }
        return text.toString();
    }

    private static String markdown(String suite, List<Figure> figures) {
        StringBuilder text =
                new StringBuilder("| figure | value | against | ratio | budget | |\n|---|---|---|---|---|---|\n");
        for (Figure figure : figures) {
            text.append(format(
                    "| %s | %s %s | %s: %s | %s | %s | %s |%n",
                    figure.name(),
                    number(figure.value()),
                    figure.unit(),
                    figure.against(),
                    figure.hasReference() ? number(figure.reference()) : "",
                    figure.hasReference() ? number(figure.ratio()) : "",
                    FigureBudgets.describe(suite, figure.name()),
                    verdict(suite, figure)));
        }
        return text.append('\n').append(legend(figures)).toString();
    }

    /// Writes a page to read and lines to compare under `bench/results`, beside what was measured on.
    ///
    /// @return the page; the lines are beside it, with `.jsonl` in place of `.md`
    private Path record(String suite, String title, List<Figure> figures) throws IOException {
        Files.createDirectories(RECORDS);
        LocalDate day = LocalDate.now(ZoneId.systemDefault());
        MachineInfo machine = MachineInfo.current();
        String name = suite + "-" + day + (machine.commit().isEmpty() ? "" : "-" + machine.commit());
        Path page = RECORDS.resolve(name + ".md");
        String head = format(
                "# %s: %s%n%n- %s%n- %s%n- load %s%n- commit %s, %s%n- `kvcache %s`%n%n",
                suite,
                title,
                machine.hardware(),
                machine.software(),
                machine.load(),
                machine.commit().isEmpty() ? "unknown" : machine.commit(),
                day,
                io().arguments());
        Files.writeString(page, head + markdown(suite, figures));
        Files.writeString(RECORDS.resolve(name + ".jsonl"), jsonLines(suite, figures));
        return page;
    }

    /// Explains the ratio, which is not always the quotient of the two figures beside it.
    private static String legend(List<Figure> figures) {
        IntSummaryStatistics rounds = figures.stream().mapToInt(Figure::rounds).summaryStatistics();
        return format(
                "Medians of rounds: %s. A ratio is the median of the rounds' own.%n",
                rounds.getMin() == rounds.getMax() ? rounds.getMax() : rounds.getMin() + " to " + rounds.getMax());
    }

    private static String verdict(String suite, Figure figure) {
        return FigureBudgets.isMet(suite, figure) ? "ok" : "MISSED";
    }

    /// Three digits or so.
    private static String number(double value) {
        String form = value >= 100 ? "%,.0f" : value >= 10 ? "%.1f" : value >= 0.01 || value == 0 ? "%.2f" : "%.1e";
        return format(form, value);
    }

    @SuppressWarnings("AnnotateFormatMethod") // the annotation lives in a library that nothing else here needs
    private static String format(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }

    /// A time on the command line: a number of seconds, minutes or hours, as in 90s, 10m or 2h.
    static final class DurationConverter implements ITypeConverter<Duration> {

        @Override
        public Duration convert(String text) {
            long millis = Units.millis(text).orElse(0);
            if (millis < 1) {
                throw new TypeConversionException(
                        "'" + text + "' is not a time; it takes " + Units.TIME_FORMATS + ", above 0, as in 10m");
            }
            return Duration.ofMillis(millis);
        }
    }
}
