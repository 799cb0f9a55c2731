package io.kvcache.planner.report;

import io.kvcache.planner.report.HtmlReport.Chart;
import io.kvcache.planner.report.HtmlReport.Chart.Series;
import io.kvcache.planner.report.HtmlReport.Chart.SeriesRole;
import io.kvcache.planner.report.HtmlReport.HtmlTable;
import io.kvcache.planner.report.HtmlReport.ReportOrigin;
import io.kvcache.planner.trace.Trace;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/// The laboratory's rows over host memory and a disk as a page: what each policy with each rule of
/// admission finds, saves and writes.
public final class TierHtmlReport {

    /// Columns of every policy with every rule of admission.
    private static final List<Column> COLUMNS = List.of(
            Column.key("deviceShare"),
            Column.key("hostShare"),
            Column.key("diskShare"),
            Column.key("policy", 14),
            Column.key("run"),
            Column.key("admission", 11),
            Column.percent("block hits", "blockHitRatio"),
            Column.percent("token hits", "tokenHitRatio"),
            Column.percent("on device", "deviceHitRatio"),
            Column.percent("in host", "hostHitRatio"),
            Column.percent("of gap", "gapClosed"),
            Column.wholeSeconds("saved", "prefillSecondsSaved"),
            Column.wholeSeconds("moving", "loadSeconds"),
            Column.wholeSeconds("net", "savedLessLoadingSeconds"),
            Column.seconds("first token p50", "ttftP50Seconds"),
            Column.seconds("p99", "ttftP99Seconds"),
            Column.percent("host taken", "hostOccupancy"),
            Column.percent("disk taken", "diskOccupancy"),
            Column.bytes("host read", "hostBytesRead"),
            Column.bytes("disk read", "diskBytesRead"),
            Column.bytes("disk written", "diskBytesWritten"),
            Column.percent("blocks of put", "writtenOfPut"),
            Column.percent("bytes of put", "diskBytesOfPut"),
            Column.count("wrong", "wrongBlocks"));

    private final List<Column> columns;
    private final String sha256;
    private final Trace trace;
    private final List<ResultRow> rows = new ArrayList<>();

    /// @param columns of its table
    /// @param trace that all rows are of
    /// @param sha256 of the whole trace
    public TierHtmlReport(List<Column> columns, Trace trace, String sha256) {
        this.columns = columns;
        this.trace = trace;
        this.sha256 = sha256;
    }

    /// The columns of a table.
    ///
    /// @param withDevice whether a GPU keeps blocks
    public static List<Column> columns(boolean withDevice) {
        return COLUMNS.stream()
                .filter(column -> withDevice || !column.field().startsWith("device"))
                .toList();
    }

    /// One policy with one rule of admission.
    public void addRow(ResultRow row) {
        rows.add(row);
    }

    /// All that was added.
    public HtmlReport toHtmlReport(ReportOrigin origin) {
        HtmlReport htmlReport = new HtmlReport("Policies over host memory and disk", origin.text());
        htmlReport.addSection(
                trace.name(),
                String.format(
                        Locale.ROOT,
                        "%,d requests%s; SHA-256 of the trace %s. A policy orders what is in host memory; a rule of admission says what is"
                                + " written to disk. What the store does not have runs in a model, above a disk of"
                                + " LRU that all is written to. Times are those of a model of an engine.",
                        trace.requests().size(),
                        rows.isEmpty() ? "" : capacities(rows.getFirst()),
                        sha256));
        htmlReport.addCharts(List.of(hitChart(), savedChart(), firstTokenChart(), writtenChart(), takenChart()));
        htmlReport.addTable(HtmlTable.of("Every policy with every rule of admission", columns, rows));
        return htmlReport;
    }

    private static String capacities(ResultRow row) {
        return String.format(
                Locale.ROOT,
                ", %,d distinct full blocks; %shost memory for %,d (%s of them), a disk for %,d (%s)",
                Math.round(row.number("diskBlocks") / row.number("diskShare")),
                row.count("deviceBlocks") == 0
                        ? ""
                        : String.format(
                                Locale.ROOT,
                                "a GPU's memory for %,d (%s), ",
                                row.count("deviceBlocks"),
                                HtmlReport.percent(row.number("deviceShare"))),
                row.count("hostBlocks"),
                HtmlReport.percent(row.number("hostShare")),
                row.count("diskBlocks"),
                HtmlReport.percent(row.number("diskShare")));
    }

    private Chart hitChart() {
        return bars(
                "Block hit ratio",
                Chart.ChartType.STACKED_BARS,
                new Chart.Axis("blocks found", true, null),
                series("on a GPU", SeriesRole.BASELINE, row -> row.number("deviceHitRatio")),
                series("in host memory", SeriesRole.SUBJECT, row -> row.number("hostHitRatio")),
                series("on disk", SeriesRole.OTHER, TierHtmlReport::diskHitRatio));
    }

    private static double diskHitRatio(ResultRow row) {
        return row.number("blockHitRatio") - row.number("deviceHitRatio") - row.number("hostHitRatio");
    }

    private Chart savedChart() {
        return bars(
                "Time saved and spent",
                Chart.ChartType.BARS,
                new Chart.Axis("seconds", false, null),
                series("prefill saved", SeriesRole.SUBJECT, row -> row.number("prefillSecondsSaved")),
                series("moving blocks", SeriesRole.OTHER, row -> row.number("loadSeconds")),
                series("net", SeriesRole.BASELINE, row -> row.number("savedLessLoadingSeconds")));
    }

    private Chart firstTokenChart() {
        return bars(
                "Time to the first token",
                Chart.ChartType.BARS,
                new Chart.Axis("seconds", false, null),
                series("median", SeriesRole.SUBJECT, row -> row.number("ttftP50Seconds")),
                series("99 of 100", SeriesRole.OTHER, row -> row.number("ttftP99Seconds")));
    }

    private Chart writtenChart() {
        return bars(
                "Written to disk",
                Chart.ChartType.BARS,
                new Chart.Axis("of the blocks that were put", true, null),
                series("written", SeriesRole.SUBJECT, row -> row.number("writtenOfPut")),
                series("all bytes that the disk got", SeriesRole.OTHER, row -> row.number("diskBytesOfPut")));
    }

    private Chart takenChart() {
        return bars(
                "How full the tiers were",
                Chart.ChartType.BARS,
                new Chart.Axis("of the capacity, the mean over the requests", true, null),
                series("host memory", SeriesRole.SUBJECT, row -> row.number("hostOccupancy")),
                series("disk", SeriesRole.OTHER, row -> row.number("diskOccupancy")));
    }

    private Chart bars(String title, Chart.ChartType chartType, Chart.Axis axis, Series... series) {
        List<String> labels = rows.stream().map(TierHtmlReport::label).toList();
        return new Chart(title, "", chartType, axis, labels, List.of(), List.of(series));
    }

    private static String label(ResultRow row) {
        return row.text("policy") + ", " + (row.text("run").equals("model") ? "model" : row.text("admission"));
    }

    private Series series(String name, SeriesRole role, ToDoubleFunction<ResultRow> value) {
        List<@Nullable Double> values = new ArrayList<>();
        rows.forEach(row -> values.add(value.applyAsDouble(row)));
        return new Series(name, role, values);
    }
}
