package io.kvcache.planner.cli;

import io.kvcache.planner.cli.PlanningOptions.TraceOption;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceDigest;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ProgressLine;
import io.kvcache.server.cli.Version;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.commons.math3.distribution.TDistribution;
import org.apache.commons.math3.stat.descriptive.SummaryStatistics;
import org.jspecify.annotations.Nullable;

/// The rows of a planning command over one trace, or over several seeds of it, as a table for people or as rows
/// for programs.
///
/// Rows for programs have all fields, each row with the columns of [RunColumns]; a table has the columns that the
/// command names. With several seeds, rows at the same place of each run are one group: behind the runs there are
/// three more rows for each group, with the mean and the ends of its 95 % interval (Student's t) in place of every
/// figure, or a table of these for people.
final class PlanningRows {

    private static final long REPORT_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final double CONFIDENCE = 0.95;

    /// Hexadecimal digits of a digest in the head of a table.
    private static final int SHOWN_DIGITS = 12;

    /// Numbers that say what was replayed. They differ between seeds where they are shares of a trace's blocks.
    private static final Set<String> SETTINGS =
            Set.of("share", "blocks", "bytes", "hostBlocks", "hostShare", "diskBlocks", "diskShare", "blockBytes");

    private final CommandIo io;
    private final RowPrinter printer;
    private final List<TraceSource> sources;
    private final List<Column> columns;
    private final List<List<Map<String, @Nullable Object>>> groups = new ArrayList<>();
    private RunColumns run = new RunColumns(null, "run", Version.text(), null);
    private boolean headed;
    private int runs;
    private int rowsOfRun;
    private long reportedAt = System.nanoTime();

    /// What sets a row apart from the others of its group.
    ///
    /// @param seed of the trace; null where it is not made from one, and in a summary
    /// @param statistic `run`, or in a summary `mean`, `ci95_low` and `ci95_high`
    /// @param traceSha256 as [io.kvcache.planner.trace.TraceDigest] has it; null in a summary
    private record RunColumns(
            @Nullable Long seed,
            String statistic,
            String kvcacheVersion,
            @Nullable String traceSha256) {}

    /// The interval that holds the mean of independent measurements with 95 %, by Student's t distribution.
    private record Interval(double mean, double halfWidth) {

        static Interval of(List<@Nullable Object> values) {
            SummaryStatistics statistics = new SummaryStatistics();
            values.forEach(value -> statistics.addValue(((Number) Objects.requireNonNull(value)).doubleValue()));
            double standardError = statistics.getStandardDeviation() / Math.sqrt(values.size());
            double quantile = new TDistribution(values.size() - 1.0).inverseCumulativeProbability((1 + CONFIDENCE) / 2);
            return new Interval(statistics.getMean(), standardError == 0 ? 0 : quantile * standardError);
        }
    }

    /// @param sources what is replayed: one trace, or one of each seed
    /// @param columns of a table for people, keys first
    PlanningRows(CommandIo io, RowPrinter printer, List<TraceSource> sources, List<Column> columns) {
        this.io = io;
        this.printer = printer;
        this.sources = sources;
        this.columns = columns;
    }

    /// Returns whether the rows of a run are shown as a table.
    boolean isText() {
        return printer.isText() && sources.size() == 1;
    }

    /// What a command does with one of several traces.
    @FunctionalInterface
    interface Run {

        /// Adds the rows of one trace.
        ///
        /// @param sha256 of the trace
        void run(Trace trace, String sha256, ProgressLine progressLine) throws IOException;
    }

    /// Loads the traces one after another, a run each, and ends.
    void forEachTrace(Run run) throws IOException {
        try (ProgressLine progressLine = new ProgressLine(io.err())) {
            for (TraceSource source : sources) {
                Trace trace = TraceOption.loadTrace(source, io.err());
                String sha256 = TraceDigest.of(source, trace);
                beginRun(source, sha256);
                run.run(trace, sha256, progressLine);
                endRun(progressLine);
            }
        }
        finish();
    }

    /// The rows that follow are of this source.
    ///
    /// @param sha256 of the trace
    void beginRun(TraceSource source, String sha256) {
        runs++;
        rowsOfRun = 0;
        Long seed = source instanceof TraceSource.Seeded seeded ? seeded.seed() : null;
        run = new RunColumns(seed, "run", Version.text(), sha256);
    }

    /// Prints a text above the table of the rows that follow, with the version and enough of the trace's digest to
    /// recognise it.
    @SuppressWarnings("AnnotateFormatMethod") // the annotation lives in a library that nothing else here needs
    void head(String format, Object... values) {
        if (isText()) {
            String text = String.format(Locale.ROOT, format, values);
            io.println(text + " " + origin(Objects.requireNonNull(run.traceSha256)));
            headed = false;
        }
    }

    /// Prints a text below a table.
    void note(String text) {
        if (isText()) {
            io.printText(text);
        }
    }

    /// What the head of a table for people names.
    static String origin(String sha256) {
        return "(SHA-256 " + sha256.substring(0, SHOWN_DIGITS) + ", kvcache " + Version.text() + ")";
    }

    /// The run has ended. Of several, says how many are done: on a terminal after each, in a log every ten
    /// seconds.
    void endRun(ProgressLine progressLine) {
        if (runs == sources.size()) {
            progressLine.update("");
            return;
        }
        String text = runs + " of " + sources.size() + " seeds of " + name();
        progressLine.update(text);
        if (!progressLine.isTerminal() && System.nanoTime() - reportedAt >= REPORT_INTERVAL_NANOS) {
            reportedAt = System.nanoTime();
            io.err().println("kvcache: " + text);
            io.err().flush();
        }
    }

    /// Adds a row of the run.
    void add(ResultRow row) {
        Map<String, @Nullable Object> values = row.putAll(run).values();
        if (!printer.isText()) {
            printer.print(values);
        } else if (isText()) {
            printLine(values);
        }
        if (sources.size() > 1) {
            if (rowsOfRun == groups.size()) {
                groups.add(new ArrayList<>());
            }
            groups.get(rowsOfRun++).add(values);
        }
    }

    private void printLine(Map<String, @Nullable Object> values) {
        List<Integer> widths = columns.stream().map(Column::width).toList();
        if (!headed) {
            headed = true;
            io.println(line(columns.stream().map(Column::head).toList(), widths));
        }
        io.println(line(
                columns.stream()
                        .map(column -> column.text(values.get(column.field())))
                        .toList(),
                widths));
    }

    /// Keys are flush left, figures flush right.
    private String line(List<String> texts, List<Integer> widths) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < texts.size(); i++) {
            boolean left = columns.get(i).isKey();
            line.append(String.format(Locale.ROOT, (left ? "%-" : "%") + widths.get(i) + "s  ", texts.get(i)));
        }
        return line.toString().stripTrailing();
    }

    /// All runs have ended.
    void finish() {
        if (sources.size() == 1) {
            return;
        }
        if (!printer.isText()) {
            for (List<Map<String, @Nullable Object>> group : groups) {
                List.of("mean", "ci95_low", "ci95_high").forEach(each -> printer.print(summary(group, each)));
            }
            return;
        }
        io.println(name() + ": mean of " + sources.size() + " seeds ± half of the 95 % interval (Student's t)");
        printTable();
    }

    private String name() {
        return sources.getFirst().name() + " to " + sources.getLast().name();
    }

    private Map<String, @Nullable Object> summary(List<Map<String, @Nullable Object>> group, String statistic) {
        Map<String, @Nullable Object> summary = new LinkedHashMap<>();
        for (String column : group.getFirst().keySet()) {
            summary.put(
                    column,
                    switch (column) {
                        case "trace" -> name();
                        case "seed" -> null;
                        case "statistic" -> statistic;
                        default -> summary(column, values(group, column), statistic);
                    });
        }
        return summary;
    }

    private static List<@Nullable Object> values(List<Map<String, @Nullable Object>> group, String column) {
        List<@Nullable Object> values = new ArrayList<>();
        group.forEach(row -> values.add(row.get(column)));
        return values;
    }

    private static @Nullable Object summary(String column, List<@Nullable Object> values, String statistic) {
        Object first = values.getFirst();
        if (values.stream().allMatch(each -> Objects.equals(each, first))) {
            return first;
        }
        if (!(first instanceof Number)) {
            return null;
        }
        Interval interval = Interval.of(values);
        return switch (SETTINGS.contains(column) ? "mean" : statistic) {
            case "ci95_low" -> interval.mean - interval.halfWidth;
            case "ci95_high" -> interval.mean + interval.halfWidth;
            default -> interval.mean;
        };
    }

    private static String interval(Column column, List<@Nullable Object> values) {
        if (values.contains(null)) {
            return "-";
        }
        Interval interval = Interval.of(values);
        return column.text(interval.mean, interval.halfWidth);
    }

    private void printTable() {
        List<List<String>> lines = new ArrayList<>();
        lines.add(columns.stream().map(Column::head).toList());
        for (List<Map<String, @Nullable Object>> group : groups) {
            Map<String, @Nullable Object> mean = summary(group, "mean");
            lines.add(columns.stream()
                    .map(column -> column.isKey()
                            ? column.text(mean.get(column.field()))
                            : interval(column, values(group, column.field())))
                    .toList());
        }
        List<Integer> widths = IntStream.range(0, columns.size())
                .mapToObj(i -> lines.stream()
                        .mapToInt(line -> line.get(i).length())
                        .max()
                        .orElse(1))
                .toList();
        lines.forEach(line -> io.println(line(line, widths)));
    }
}
