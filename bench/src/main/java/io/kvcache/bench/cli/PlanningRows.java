package io.kvcache.bench.cli;

import io.kvcache.bench.ConfidenceInterval;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.server.cli.ProgressLine;
import io.kvcache.server.cli.Version;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The rows of a planning command over one trace, or over several seeds of it.
///
/// A run of one trace prints its rows for programs, each with the columns of [RunColumns]; tables for people
/// are the command's own. With several seeds, rows at the same place of each run are one group: behind the runs
/// there are three more rows for each group, with the mean and the ends of its 95 % interval in place of every
/// figure, or a table of these for people.
final class PlanningRows {

    private static final long REPORT_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(10);

    /// Hexadecimal digits of a digest in the head of a table.
    private static final int SHOWN_DIGITS = 12;

    /// Numbers that say what was replayed. They differ between seeds where they are shares of a trace's blocks.
    private static final Set<String> SETTINGS =
            Set.of("share", "blocks", "bytes", "hostBlocks", "hostShare", "diskBlocks", "diskShare", "blockBytes");

    private final CommandIo io;
    private final RowPrinter printer;
    private final List<TraceSource> sources;
    private final List<List<Map<String, @Nullable Object>>> groups = new ArrayList<>();
    private RunColumns run = new RunColumns(null, "run", Version.text(), null);
    private int runs;
    private int rowsOfRun;
    private long reportedAt = System.nanoTime();

    /// What sets a row apart from the others of its group.
    ///
    /// @param seed of the trace; null where it is not made from one, and in a summary
    /// @param statistic `run`, or in a summary `mean`, `ci95_low` and `ci95_high`
    /// @param traceSha256 as [io.kvcache.bench.trace.TraceDigest] has it; null in a summary
    private record RunColumns(
            @Nullable Long seed,
            String statistic,
            String kvcacheVersion,
            @Nullable String traceSha256) {}

    /// A figure of the table for people.
    ///
    /// @param column its name among the fields of a row
    /// @param factor from the field to what is shown, 100 for percent
    /// @param digits behind the point
    record Figure(String head, String column, double factor, int digits) {

        static Figure percent(String head, String column) {
            return new Figure(head, column, 100, 2);
        }

        static Figure seconds(String head, String column) {
            return new Figure(head, column, 1, 2);
        }
    }

    /// Returns a hit ratio as every report shows it: `11.18 %`. Rows for programs have the share of one, in all digits.
    static String percent(double ratio) {
        return String.format(Locale.ROOT, "%.2f %%", 100 * ratio);
    }

    /// @param sources what is replayed: one trace, or one of each seed
    PlanningRows(CommandIo io, RowPrinter printer, List<TraceSource> sources) {
        this.io = io;
        this.printer = printer;
        this.sources = sources;
    }

    /// Returns whether the command prints its own table, and gives no rows.
    boolean isText() {
        return printer.isText() && sources.size() == 1;
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

    /// What the head of a table for people names: the version, and enough of the digest to recognise the trace.
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
    void add(Record row, Record... more) {
        Map<String, @Nullable Object> values = RowPrinter.values(row);
        RowPrinter.addAll(values, more);
        RowPrinter.addAll(values, run);
        if (!printer.isText()) {
            printer.print(values);
        }
        if (sources.size() > 1) {
            if (rowsOfRun == groups.size()) {
                groups.add(new ArrayList<>());
            }
            groups.get(rowsOfRun++).add(values);
        }
    }

    /// All runs have ended.
    ///
    /// @param keys names of the fields that tell the rows of a table apart
    /// @param figures of a table
    void finish(List<String> keys, List<Figure> figures) {
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
        printTable(keys, figures);
    }

    private String name() {
        return sources.getFirst().name() + " to " + sources.getLast().name();
    }

    private Map<String, @Nullable Object> summary(List<Map<String, @Nullable Object>> group, String statistic) {
        Map<String, @Nullable Object> summary = new LinkedHashMap<>();
        for (String column : group.getFirst().keySet()) {
            List<@Nullable Object> values = new ArrayList<>();
            group.forEach(row -> values.add(row.get(column)));
            summary.put(
                    column,
                    switch (column) {
                        case "trace" -> name();
                        case "seed" -> null;
                        case "statistic" -> statistic;
                        default -> summary(column, values, statistic);
                    });
        }
        return summary;
    }

    private static @Nullable Object summary(String column, List<@Nullable Object> values, String statistic) {
        Object first = values.getFirst();
        if (values.stream().allMatch(each -> Objects.equals(each, first))) {
            return first;
        }
        if (!(first instanceof Number)) {
            return null;
        }
        ConfidenceInterval interval = interval(values);
        return switch (SETTINGS.contains(column) ? "mean" : statistic) {
            case "ci95_low" -> interval.low();
            case "ci95_high" -> interval.high();
            default -> interval.mean();
        };
    }

    private static ConfidenceInterval interval(List<@Nullable Object> values) {
        return ConfidenceInterval.of(values.stream()
                .map(each -> ((Number) Objects.requireNonNull(each)).doubleValue())
                .toList());
    }

    private void printTable(List<String> keys, List<Figure> figures) {
        List<List<String>> lines = new ArrayList<>();
        List<String> heads =
                new ArrayList<>(keys.stream().map(RowPrinter::csvName).toList());
        figures.forEach(figure -> heads.add(figure.head));
        lines.add(heads);
        for (List<Map<String, @Nullable Object>> group : groups) {
            Map<String, @Nullable Object> mean = summary(group, "mean");
            List<String> line = new ArrayList<>();
            keys.forEach(key -> line.add(keyText(key, mean.get(key))));
            figures.forEach(figure -> line.add(text(figure, group)));
            lines.add(line);
        }
        List<Integer> widths = IntStream.range(0, heads.size())
                .mapToObj(i -> lines.stream()
                        .mapToInt(line -> line.get(i).length())
                        .max()
                        .orElse(0))
                .toList();
        for (List<String> line : lines) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < line.size(); i++) {
                boolean left = i < keys.size();
                text.append(String.format(Locale.ROOT, (left ? "%-" : "%") + widths.get(i) + "s  ", line.get(i)));
            }
            io.println(text.toString().stripTrailing());
        }
    }

    private static String keyText(String key, @Nullable Object value) {
        if (!(value instanceof Number number)) {
            return String.valueOf(value);
        }
        if (key.endsWith("Bytes")) {
            return new ByteSizeText(number.longValue()).toString();
        }
        return key.toLowerCase(Locale.ROOT).endsWith("share")
                ? String.format(Locale.ROOT, "%.1f %%", 100 * number.doubleValue())
                : String.format(Locale.ROOT, "%,.0f", number.doubleValue());
    }

    private static String text(Figure figure, List<Map<String, @Nullable Object>> group) {
        List<@Nullable Object> values = new ArrayList<>();
        group.forEach(row -> values.add(row.get(figure.column)));
        ConfidenceInterval interval = interval(values);
        return String.format(
                Locale.ROOT,
                "%,." + figure.digits + "f ± %,." + figure.digits + "f" + (figure.factor == 100 ? " %%" : " s"),
                figure.factor * interval.mean(),
                figure.factor * interval.halfWidth());
    }
}
