package io.kvcache.bench.report;

import io.kvcache.bench.lab.LabRow;
import io.kvcache.bench.report.HtmlTable.Cell;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.stream.DoubleStream;

/// The tables of one trace: a line a policy and a column a capacity, and all rows as they came.
///
/// @param shares of the distinct blocks that fit, ascending
record LabTables(List<LabRow> rows, List<Double> shares) {

    /// The share of the gap closed; the colour goes from LRU to Belady.
    HtmlTable gapTable() {
        return pivot("Share of the gap from LRU to Belady closed, in percent", "%.0f", LabRow::gapClosed, false);
    }

    /// What was found; the colour goes from a column's least to its most.
    HtmlTable hitTable() {
        return pivot("Block hit ratio, in percent", "%.2f", LabRow::blockHitRatio, true);
    }

    /// Every row, in the order of the replays.
    HtmlTable rowTable() {
        List<String> heads = List.of(
                "capacity",
                "blocks",
                "policy",
                "block hits",
                "token hits",
                "LRU",
                "Belady",
                "of the gap",
                "prefill saved, s",
                "moving, s",
                "net, s",
                "first token p50, s",
                "p99, s",
                "taken",
                "blocks put",
                "seconds");
        return new HtmlTable(
                "Every replay", heads, rows.stream().map(LabTables::line).toList());
    }

    /// A share as it heads a column.
    static String label(double share) {
        String percent = String.format(Locale.ROOT, "%.3f", 100 * share);
        return percent.replaceFirst("\\.?0+$", "") + " %";
    }

    private HtmlTable pivot(String caption, String form, ToDoubleFunction<LabRow> value, boolean fromLeast) {
        List<String> heads = new ArrayList<>(List.of("policy"));
        shares.forEach(share -> heads.add(label(share)));
        Map<String, List<Cell>> lines = new LinkedHashMap<>();
        rows.forEach(row -> lines.computeIfAbsent(row.policy(), name -> new ArrayList<>(List.of(Cell.text(name)))));
        for (double share : shares) {
            Column column = new Column(rowsOf(share), value, fromLeast);
            lines.forEach((policy, line) -> line.add(column.cell(policy, form)));
        }
        return new HtmlTable(caption, heads, List.copyOf(lines.values()));
    }

    private List<LabRow> rowsOf(double share) {
        return rows.stream().filter(row -> row.share() == share).toList();
    }

    /// One capacity.
    private record Column(List<LabRow> rows, ToDoubleFunction<LabRow> value, boolean fromLeast) {

        Cell cell(String policy, String form) {
            LabRow row = rows.stream()
                    .filter(each -> each.policy().equals(policy))
                    .findFirst()
                    .orElse(null);
            if (row == null) {
                return Cell.text("");
            }
            double own = value.applyAsDouble(row);
            double least = fromLeast ? values(rows).min().orElse(0) : 0;
            double most = fromLeast ? values(rows).max().orElse(1) : 1;
            double heat = most > least ? (own - least) / (most - least) : 0;
            String text = String.format(Locale.ROOT, form, 100 * own);
            return new Cell(text.equals("-0") ? "0" : text, true, Math.clamp(heat, 0, 1), own == best());
        }

        /// Of what does not know the future.
        private double best() {
            return values(rows.stream()
                            .filter(row -> !row.policy().startsWith("belady"))
                            .toList())
                    .max()
                    .orElse(Double.NaN);
        }

        private DoubleStream values(List<LabRow> of) {
            return of.stream().mapToDouble(value);
        }
    }

    private static List<Cell> line(LabRow row) {
        return List.of(
                Cell.number(label(row.share())),
                Cell.number(String.format(Locale.ROOT, "%,d", row.blocks())),
                Cell.text(row.policy()),
                Cell.number(HtmlReport.percent(row.blockHitRatio())),
                Cell.number(HtmlReport.percent(row.tokenHitRatio())),
                Cell.number(HtmlReport.percent(row.lruHitRatio())),
                Cell.number(HtmlReport.percent(row.beladyHitRatio())),
                Cell.number(String.format(Locale.ROOT, "%.0f %%", 100 * row.gapClosed())),
                Cell.number(String.format(Locale.ROOT, "%,.0f", row.prefillSecondsSaved())),
                Cell.number(String.format(Locale.ROOT, "%,.0f", row.loadSeconds())),
                Cell.number(String.format(Locale.ROOT, "%,.0f", row.savedLessLoadingSeconds())),
                Cell.number(String.format(Locale.ROOT, "%.2f", row.ttftP50Seconds())),
                Cell.number(String.format(Locale.ROOT, "%.1f", row.ttftP99Seconds())),
                Cell.number(String.format(Locale.ROOT, "%.0f %%", 100 * row.occupancy())),
                Cell.number(String.format(Locale.ROOT, "%,d", row.blocksPut())),
                Cell.number(String.format(Locale.ROOT, "%.2f", row.seconds())));
    }
}
