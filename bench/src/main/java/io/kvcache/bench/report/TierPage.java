package io.kvcache.bench.report;

import io.kvcache.bench.lab.TierRow;
import io.kvcache.bench.report.Figure.Role;
import io.kvcache.bench.report.Figure.Series;
import io.kvcache.bench.report.Table.Cell;
import io.kvcache.bench.trace.Trace;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/// The laboratory's rows over host memory and a disk as a page: what each policy with each rule of
/// admission finds, saves and writes.
public final class TierPage {

    private final String command;
    private final Trace trace;
    private final List<TierRow> rows = new ArrayList<>();

    /// @param command how the rows were asked for
    /// @param trace that all rows are of
    public TierPage(String command, Trace trace) {
        this.command = command;
        this.trace = trace;
    }

    /// One policy with one rule of admission.
    public void add(TierRow row) {
        rows.add(row);
    }

    /// All that was added.
    public Page page() {
        Page page = new Page("Policies over host memory and disk", "Made by " + command);
        page.section(
                trace.name(),
                String.format(
                        Locale.ROOT,
                        "%,d requests%s. A policy orders what is in host memory; a rule of admission says what is"
                                + " written to disk. What the store does not have runs in a model, above a disk of"
                                + " LRU that all is written to. Times are those of a model of an engine.",
                        trace.requests().size(),
                        rows.isEmpty() ? "" : capacities(rows.getFirst())));
        page.charts(List.of(hits(), saved(), firstToken(), written(), taken()));
        page.table(table());
        return page;
    }

    private static String capacities(TierRow row) {
        return String.format(
                Locale.ROOT,
                ", %,d distinct full blocks; host memory for %,d (%s of them), a disk for %,d (%s)",
                Math.round(row.diskBlocks() / row.diskShare()),
                row.hostBlocks(),
                Page.percent(row.hostShare()),
                row.diskBlocks(),
                Page.percent(row.diskShare()));
    }

    private Figure hits() {
        return bars(
                "Block hit ratio",
                Figure.Form.STACKED_BARS,
                new Figure.Axis("blocks found", true, null),
                series("in host memory", Role.SUBJECT, TierRow::hostHitRatio),
                series("on disk", Role.OTHER, row -> row.blockHitRatio() - row.hostHitRatio()));
    }

    private Figure saved() {
        return bars(
                "Time saved and spent",
                Figure.Form.BARS,
                new Figure.Axis("seconds", false, null),
                series("prefill saved", Role.SUBJECT, TierRow::prefillSecondsSaved),
                series("moving blocks", Role.OTHER, TierRow::loadSeconds),
                series("net", Role.BASELINE, TierRow::savedLessLoadingSeconds));
    }

    private Figure firstToken() {
        return bars(
                "Time to the first token",
                Figure.Form.BARS,
                new Figure.Axis("seconds", false, null),
                series("median", Role.SUBJECT, TierRow::ttftP50Seconds),
                series("99 of 100", Role.OTHER, TierRow::ttftP99Seconds));
    }

    private Figure written() {
        return bars(
                "Written to disk",
                Figure.Form.BARS,
                new Figure.Axis("of the blocks that were put", true, null),
                series("written", Role.SUBJECT, TierRow::writtenOfPut),
                series("all bytes that the disk got", Role.OTHER, TierRow::diskBytesOfPut));
    }

    private Figure taken() {
        return bars(
                "How full the tiers were",
                Figure.Form.BARS,
                new Figure.Axis("of the capacity, the mean over the requests", true, null),
                series("host memory", Role.SUBJECT, TierRow::hostOccupancy),
                series("disk", Role.OTHER, TierRow::diskOccupancy));
    }

    private Figure bars(String title, Figure.Form form, Figure.Axis axis, Series... series) {
        List<String> labels = rows.stream().map(TierPage::label).toList();
        return new Figure(title, "", form, axis, labels, List.of(), List.of(series));
    }

    private static String label(TierRow row) {
        return row.policy() + ", " + (row.run().equals("model") ? "model" : row.admission());
    }

    private Series series(String name, Role role, ToDoubleFunction<TierRow> value) {
        List<@Nullable Double> values = new ArrayList<>();
        rows.forEach(row -> values.add(value.applyAsDouble(row)));
        return new Series(name, role, values);
    }

    private Table table() {
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
        return new Table(
                "Every policy with every rule of admission",
                heads,
                rows.stream().map(this::line).toList());
    }

    private List<Cell> line(TierRow row) {
        return List.of(
                Cell.text(row.policy()),
                Cell.text(row.run()),
                Cell.text(row.admission()),
                cell(Page.percent(row.blockHitRatio()), row, TierRow::blockHitRatio, 1),
                cell(Page.percent(row.tokenHitRatio()), row, TierRow::tokenHitRatio, 1),
                cell(Page.percent(row.hostHitRatio()), row, TierRow::hostHitRatio, 1),
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

    /// What knows the future is not compared with what does not.
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
