package io.kvcache.bench.report;

import io.kvcache.bench.lab.TierRow;
import io.kvcache.bench.report.Chart.Series;
import io.kvcache.bench.report.Chart.SeriesRole;
import io.kvcache.bench.report.HtmlReport.HtmlTable;
import io.kvcache.bench.report.HtmlReport.HtmlTable.Cell;
import io.kvcache.bench.trace.Trace;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/// The laboratory's rows over host memory and a disk as a page: what each policy with each rule of
/// admission finds, saves and writes.
public final class TierHtmlReport {

    private final String sha256;
    private final Trace trace;
    private final List<TierRow> rows = new ArrayList<>();

    /// @param trace that all rows are of
    /// @param sha256 of the whole trace
    public TierHtmlReport(Trace trace, String sha256) {
        this.trace = trace;
        this.sha256 = sha256;
    }

    /// One policy with one rule of admission.
    public void addRow(TierRow row) {
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
        htmlReport.addTable(table());
        return htmlReport;
    }

    private static String capacities(TierRow row) {
        return String.format(
                Locale.ROOT,
                ", %,d distinct full blocks; host memory for %,d (%s of them), a disk for %,d (%s)",
                Math.round(row.diskBlocks() / row.diskShare()),
                row.hostBlocks(),
                HtmlReport.percent(row.hostShare()),
                row.diskBlocks(),
                HtmlReport.percent(row.diskShare()));
    }

    private Chart hitChart() {
        return bars(
                "Block hit ratio",
                Chart.ChartType.STACKED_BARS,
                new Chart.Axis("blocks found", true, null),
                series("in host memory", SeriesRole.SUBJECT, TierRow::hostHitRatio),
                series("on disk", SeriesRole.OTHER, row -> row.blockHitRatio() - row.hostHitRatio()));
    }

    private Chart savedChart() {
        return bars(
                "Time saved and spent",
                Chart.ChartType.BARS,
                new Chart.Axis("seconds", false, null),
                series("prefill saved", SeriesRole.SUBJECT, TierRow::prefillSecondsSaved),
                series("moving blocks", SeriesRole.OTHER, TierRow::loadSeconds),
                series("net", SeriesRole.BASELINE, TierRow::savedLessLoadingSeconds));
    }

    private Chart firstTokenChart() {
        return bars(
                "Time to the first token",
                Chart.ChartType.BARS,
                new Chart.Axis("seconds", false, null),
                series("median", SeriesRole.SUBJECT, TierRow::ttftP50Seconds),
                series("99 of 100", SeriesRole.OTHER, TierRow::ttftP99Seconds));
    }

    private Chart writtenChart() {
        return bars(
                "Written to disk",
                Chart.ChartType.BARS,
                new Chart.Axis("of the blocks that were put", true, null),
                series("written", SeriesRole.SUBJECT, TierRow::writtenOfPut),
                series("all bytes that the disk got", SeriesRole.OTHER, TierRow::diskBytesOfPut));
    }

    private Chart takenChart() {
        return bars(
                "How full the tiers were",
                Chart.ChartType.BARS,
                new Chart.Axis("of the capacity, the mean over the requests", true, null),
                series("host memory", SeriesRole.SUBJECT, TierRow::hostOccupancy),
                series("disk", SeriesRole.OTHER, TierRow::diskOccupancy));
    }

    private Chart bars(String title, Chart.ChartType chartType, Chart.Axis axis, Series... series) {
        List<String> labels = rows.stream().map(TierHtmlReport::label).toList();
        return new Chart(title, "", chartType, axis, labels, List.of(), List.of(series));
    }

    private static String label(TierRow row) {
        return row.policy() + ", " + (row.run().equals("model") ? "model" : row.admission());
    }

    private Series series(String name, SeriesRole role, ToDoubleFunction<TierRow> value) {
        List<@Nullable Double> values = new ArrayList<>();
        rows.forEach(row -> values.add(value.applyAsDouble(row)));
        return new Series(name, role, values);
    }

    private HtmlTable table() {
        List<String> heads = List.of(
                "policy",
                "run",
                "admission",
                "hits",
                "token hits",
                "in host memory",
                "of the gap",
                "prefill saved, s",
                "moving, s",
                "net, s",
                "first token p50, s",
                "p99, s",
                "host taken",
                "disk taken",
                "read from host",
                "from disk",
                "written to disk",
                "written",
                "disk bytes",
                "wrong blocks");
        return new HtmlTable(
                "Every policy with every rule of admission",
                heads,
                rows.stream().map(this::line).toList());
    }

    private List<Cell> line(TierRow row) {
        return List.of(
                Cell.text(row.policy()),
                Cell.text(row.run()),
                Cell.text(row.admission()),
                cell(HtmlReport.percent(row.blockHitRatio()), row, TierRow::blockHitRatio, 1),
                cell(HtmlReport.percent(row.tokenHitRatio()), row, TierRow::tokenHitRatio, 1),
                cell(HtmlReport.percent(row.hostHitRatio()), row, TierRow::hostHitRatio, 1),
                Cell.number(format("%.0f %%", 100 * row.gapClosed())),
                cell(format("%,.0f", row.prefillSecondsSaved()), row, TierRow::prefillSecondsSaved, 1),
                Cell.number(format("%,.0f", row.loadSeconds())),
                cell(format("%,.0f", row.savedLessLoadingSeconds()), row, TierRow::savedLessLoadingSeconds, 1),
                cell(format("%.2f", row.ttftP50Seconds()), row, TierRow::ttftP50Seconds, -1),
                cell(format("%.1f", row.ttftP99Seconds()), row, TierRow::ttftP99Seconds, -1),
                Cell.number(format("%.0f %%", 100 * row.hostOccupancy())),
                Cell.number(format("%.0f %%", 100 * row.diskOccupancy())),
                Cell.number(gib(row.hostBytesRead())),
                Cell.number(gib(row.diskBytesRead())),
                Cell.number(gib(row.diskBytesWritten())),
                cell(format("%.1f %%", 100 * row.writtenOfPut()), row, TierRow::writtenOfPut, -1),
                cell(format("%.1f %%", 100 * row.diskBytesOfPut()), row, TierRow::diskBytesOfPut, -1),
                Cell.number(String.valueOf(row.wrongBlocks())));
    }

    /// @param sign of 1 where more is better, of -1 where less is
    private Cell cell(String text, TierRow row, ToDoubleFunction<TierRow> value, int sign) {
        double own = sign * value.applyAsDouble(row);
        boolean best = !isBound(row)
                && rows.stream()
                        .filter(each -> !isBound(each))
                        .allMatch(each -> sign * value.applyAsDouble(each) <= own);
        return new Cell(text, true, 0, best);
    }

    /// Returns whether a row knows the future; such rows are not compared with the others.
    private static boolean isBound(TierRow row) {
        return row.policy().startsWith("belady");
    }

    private static String gib(long bytes) {
        return format("%,.0f GiB", bytes / (double) (1L << 30));
    }

    private static String format(String form, double value) {
        return String.format(Locale.ROOT, form, value);
    }
}
