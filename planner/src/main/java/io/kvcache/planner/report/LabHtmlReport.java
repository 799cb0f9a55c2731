package io.kvcache.planner.report;

import io.kvcache.planner.report.HtmlReport.Chart;
import io.kvcache.planner.report.HtmlReport.Chart.Series;
import io.kvcache.planner.report.HtmlReport.Chart.SeriesRole;
import io.kvcache.planner.report.HtmlReport.HtmlTable;
import io.kvcache.planner.report.HtmlReport.HtmlTable.Cell;
import io.kvcache.planner.report.HtmlReport.ReportOrigin;
import io.kvcache.planner.trace.Trace;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import org.jspecify.annotations.Nullable;

/// The laboratory's rows as a page: for each trace what the policies find by capacity, and how much of
/// the gap between LRU and Belady's rule they close.
public final class LabHtmlReport {

    /// Columns of every replay.
    public static final List<Column> COLUMNS = List.of(
            Column.key("share"),
            Column.key("blocks"),
            Column.key("policy", 30),
            Column.percent("block hits", "blockHitRatio"),
            Column.percent("token hits", "tokenHitRatio"),
            Column.percent("bound", "beladyBypassHitRatio"),
            Column.percent("of the gap", "gapClosed"),
            Column.wholeSeconds("saved", "prefillSecondsSaved"),
            Column.wholeSeconds("moving", "loadSeconds"),
            Column.wholeSeconds("net", "savedLessLoadingSeconds"),
            Column.seconds("first token p50", "ttftP50Seconds"),
            Column.seconds("p99", "ttftP99Seconds"),
            Column.percent("taken", "occupancy"),
            Column.percent("declined", "declinedShare"));

    private static final String BOUND = "belady-bypass";
    private static final String BASELINE = "lru";
    /// Below this a chart of the gap shows how bad the worst is and nothing else.
    private static final double MIN_GAP = -0.6;

    private final Map<String, TraceRows> rowsByTrace = new LinkedHashMap<>();

    private record TraceRows(Trace.Totals totals, String sha256, boolean hasTimestamps, List<ResultRow> rows) {}

    /// The rows that follow are of this trace.
    ///
    /// @param sha256 of the trace
    public void beginTrace(Trace trace, String sha256) {
        rowsByTrace.put(trace.name(), new TraceRows(trace.totals(), sha256, trace.hasTimestamps(), new ArrayList<>()));
    }

    /// One cache at one capacity, of a trace that was begun.
    public void addRow(ResultRow row) {
        TraceRows traceRows = rowsByTrace.get(row.text("trace"));
        if (traceRows == null) {
            throw new IllegalArgumentException("rows of " + row.text("trace") + ", which was not begun");
        }
        traceRows.rows.add(row);
    }

    /// All that was added.
    public HtmlReport toHtmlReport(ReportOrigin origin) {
        HtmlReport htmlReport = new HtmlReport("Policies by capacity", origin.text());
        rowsByTrace.forEach((trace, traceRows) -> new Section(traceRows.rows).write(htmlReport, trace, traceRows));
        return htmlReport;
    }

    /// The section of one trace.
    private static final class Section {

        private final List<ResultRow> rows;
        private final List<Double> shares;
        private final Map<String, Map<Double, ResultRow>> policies;

        Section(List<ResultRow> rows) {
            this.rows = rows;
            shares = List.copyOf(
                    rows.stream().map(row -> row.number("share")).collect(Collectors.toCollection(TreeSet::new)));
            policies = rows.stream()
                    .collect(Collectors.groupingBy(
                            row -> row.text("policy"),
                            LinkedHashMap::new,
                            Collectors.toMap(row -> row.number("share"), row -> row, (_, last) -> last)));
        }

        void write(HtmlReport htmlReport, String trace, TraceRows traceRows) {
            Trace.Totals totals = traceRows.totals;
            htmlReport.addSection(
                    trace,
                    String.format(
                            Locale.ROOT,
                            "%,d requests, %,d blocks looked up, %,d of them distinct%s; SHA-256 of the trace %s. A capacity is the share of"
                                    + " the distinct blocks that fit. No cache exceeds Belady's rule with bypass.",
                            totals.requests(),
                            totals.blockAccesses(),
                            totals.distinctBlocks(),
                            rows.isEmpty() ? "" : "; rule " + rows.getFirst().text("rule"),
                            traceRows.sha256));
            htmlReport.addCharts(List.of(hits(), gap()));
            String note = traceRows.hasTimestamps ? "" : "the trace has no times, so these are of one queue";
            htmlReport.addCharts(List.of(
                    firstToken("Time to the first token, median", note, "ttftP50Seconds"),
                    firstToken("Time to the first token, 99th percentile", note, "ttftP99Seconds")));
            LabTables tables = new LabTables(rows, shares);
            htmlReport.addTable(tables.gapTable());
            htmlReport.addTable(tables.hitTable());
            htmlReport.addFoldedTable("All " + rows.size() + " rows", tables.rowTable());
        }

        private Chart hits() {
            List<Series> series = new ArrayList<>();
            series.add(new Series(BOUND, SeriesRole.BOUND, over(this::bound)));
            series.add(new Series(BASELINE, SeriesRole.BASELINE, over(this::baseline)));
            others(series, "blockHitRatio");
            return figure("Block hit ratio by capacity", "", new Chart.Axis("blocks found", true, 0.0), series);
        }

        private Chart gap() {
            List<Series> series = new ArrayList<>();
            series.add(new Series(BASELINE, SeriesRole.BASELINE, over(_ -> 0.0)));
            others(series, "gapClosed");
            return figure(
                    "Share of the gap closed",
                    "0 is LRU, 100 is Belady's rule with bypass; what is below −60 is in the table only",
                    new Chart.Axis("of the gap from LRU to Belady", true, MIN_GAP),
                    series);
        }

        private Chart firstToken(String title, String note, String seconds) {
            List<Series> series = new ArrayList<>();
            policies.keySet().forEach(policy -> series.add(series(policy, seconds)));
            return figure(title, note, new Chart.Axis("seconds", false, 0.0), series);
        }

        private Chart figure(String title, String note, Chart.Axis axis, List<Series> series) {
            List<String> labels = shares.stream().map(LabTables::label).toList();
            List<Double> at = shares.stream().map(share -> 100 * share).toList();
            return new Chart(title, note, Chart.ChartType.LINES, axis, labels, at, series);
        }

        private void others(List<Series> series, String value) {
            policies.keySet().stream()
                    .filter(policy -> !policy.equals(BASELINE) && !policy.equals(BOUND))
                    .forEach(policy -> series.add(series(policy, value)));
        }

        private Series series(String policy, String value) {
            Map<Double, ResultRow> byShare = policies.getOrDefault(policy, Map.of());
            List<@Nullable Double> values = over(share -> {
                ResultRow row = byShare.get(share);
                return row == null ? null : finite(row.number(value));
            });
            return new Series(policy, role(policy), values);
        }

        private static SeriesRole role(String policy) {
            return switch (policy.split("[+=]", 2)[0]) {
                case BASELINE -> SeriesRole.BASELINE;
                case "importance" -> SeriesRole.SUBJECT;
                case "belady", BOUND -> SeriesRole.BOUND;
                default -> SeriesRole.OTHER;
            };
        }

        private interface OfShare {
            @Nullable
            Double value(double share);
        }

        private List<@Nullable Double> over(OfShare of) {
            List<@Nullable Double> values = new ArrayList<>();
            for (double share : shares) {
                values.add(of.value(share));
            }
            return values;
        }

        private @Nullable Double bound(double share) {
            return finite(any(share).number("beladyBypassHitRatio"));
        }

        private @Nullable Double baseline(double share) {
            return finite(any(share).number("lruHitRatio"));
        }

        private ResultRow any(double share) {
            return rows.stream()
                    .filter(row -> row.number("share") == share)
                    .findFirst()
                    .orElseThrow();
        }

        private static @Nullable Double finite(double value) {
            return Double.isFinite(value) ? value : null;
        }
    }

    /// The tables of one trace: a line a policy and a column a capacity, and all rows as they came.
    ///
    /// @param shares of the distinct blocks that fit, ascending
    private record LabTables(List<ResultRow> rows, List<Double> shares) {

        /// The share of the gap closed; the colour goes from LRU to Belady.
        HtmlTable gapTable() {
            return pivot("Share of the gap from LRU to Belady closed, in percent", "%.0f", "gapClosed", false);
        }

        /// Block hit ratios. The colour goes from the least to the most of a column.
        HtmlTable hitTable() {
            return pivot("Block hit ratio, in percent", "%.2f", "blockHitRatio", true);
        }

        /// Every row, in the order of the replays.
        HtmlTable rowTable() {
            return HtmlTable.of("Every replay", COLUMNS, rows);
        }

        /// A share as it heads a column.
        static String label(double share) {
            String percent = String.format(Locale.ROOT, "%.3f", 100 * share);
            return percent.replaceFirst("\\.?0+$", "") + " %";
        }

        private HtmlTable pivot(String caption, String form, String value, boolean fromLeast) {
            List<String> heads = new ArrayList<>(List.of("policy"));
            shares.forEach(share -> heads.add(label(share)));
            Map<String, List<Cell>> lines = new LinkedHashMap<>();
            rows.forEach(row ->
                    lines.computeIfAbsent(row.text("policy"), name -> new ArrayList<>(List.of(Cell.text(name)))));
            for (double share : shares) {
                PivotColumn column = new PivotColumn(rowsOf(share), value, fromLeast);
                lines.forEach((policy, line) -> line.add(column.cell(policy, form)));
            }
            return new HtmlTable(caption, heads, List.copyOf(lines.values()));
        }

        private List<ResultRow> rowsOf(double share) {
            return rows.stream().filter(row -> row.number("share") == share).toList();
        }

        /// One capacity.
        private record PivotColumn(List<ResultRow> rows, String value, boolean fromLeast) {

            Cell cell(String policy, String form) {
                ResultRow row = rows.stream()
                        .filter(each -> each.text("policy").equals(policy))
                        .findFirst()
                        .orElse(null);
                if (row == null) {
                    return Cell.text("");
                }
                double own = row.number(value);
                double least = fromLeast ? values(rows).min().orElse(0) : 0;
                double most = fromLeast ? values(rows).max().orElse(1) : 1;
                double heat = most > least ? (own - least) / (most - least) : 0;
                String text = String.format(Locale.ROOT, form, 100 * own);
                return new Cell(text.equals("-0") ? "0" : text, true, Math.clamp(heat, 0, 1), own == best());
            }

            /// Returns the best of the policies that do not know the future.
            private double best() {
                return values(rows.stream()
                                .filter(row -> !row.text("policy").startsWith("belady"))
                                .toList())
                        .max()
                        .orElse(Double.NaN);
            }

            private DoubleStream values(List<ResultRow> of) {
                return of.stream().mapToDouble(row -> row.number(value));
            }
        }
    }
}
