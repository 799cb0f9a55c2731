package io.kvcache.bench.cli;

import io.kvcache.bench.lab.LabRow;
import io.kvcache.bench.trace.Trace;
import java.io.PrintWriter;
import java.util.Locale;
import tools.jackson.databind.json.JsonMapper;

/// How the rows of the laboratory are shown.
abstract sealed class LabReportFormat {

    /// What to know of times to the first token where a trace has none of its own.
    static final String NO_TIMESTAMPS_NOTE =
            "the trace does not say when requests came, so all come at once: times to the first token"
                    + " are of one queue.";

    private static final JsonMapper JSON = JsonMapper.builder().build();

    private final PrintWriter out;

    LabReportFormat(PrintWriter out) {
        this.out = out;
    }

    /// @throws IllegalArgumentException when there is no such format
    static void checkFormat(String format) {
        if (!format.equals("text") && !format.equals("json") && !format.equals("csv")) {
            throw new IllegalArgumentException("--format is '" + format + "', must be: text, json, csv");
        }
    }

    static LabReportFormat forFormat(String format, PrintWriter out) {
        checkFormat(format);
        return switch (format) {
            case "json" -> new JsonLines(out);
            case "csv" -> new CsvRows(out);
            default -> new TextTable(out);
        };
    }

    /// The rows that follow are of this trace.
    abstract void beginTrace(Trace trace);

    /// One cache at one capacity.
    abstract void addRow(LabRow row);

    /// No more rows.
    void finish() {
        out.flush();
    }

    final void print(String line) {
        out.println(line);
        out.flush();
    }

    private static final class JsonLines extends LabReportFormat {

        JsonLines(PrintWriter out) {
            super(out);
        }

        @Override
        void beginTrace(Trace trace) {}

        @Override
        void addRow(LabRow row) {
            print(JSON.writeValueAsString(row));
        }
    }

    private static final class CsvRows extends LabReportFormat {

        private boolean begun;

        CsvRows(PrintWriter out) {
            super(out);
        }

        @Override
        void beginTrace(Trace trace) {
            if (!begun) {
                print(LabRow.CSV_HEAD);
            }
            begun = true;
        }

        @Override
        void addRow(LabRow row) {
            print(row.csv());
        }
    }

    private static final class TextTable extends LabReportFormat {

        private int blocks;

        TextTable(PrintWriter out) {
            super(out);
        }

        @Override
        void beginTrace(Trace trace) {
            Trace.Totals totals = trace.totals();
            print(String.format(
                    Locale.ROOT,
                    "%s: %,d requests, %,d blocks, %,d distinct",
                    trace.name(),
                    totals.requests(),
                    totals.blockAccesses(),
                    totals.distinctBlocks()));
            if (!trace.hasTimestamps()) {
                print("  " + NO_TIMESTAMPS_NOTE);
            }
            print("  share    blocks  policy                          block hits  token hits     Belady  of the gap"
                    + "    saved   moving      net    first token p50      p99  taken");
            blocks = 0;
        }

        @Override
        void addRow(LabRow row) {
            boolean first = row.blocks() != blocks;
            blocks = row.blocks();
            print(String.format(
                    Locale.ROOT,
                    "%6s %9s  %-30s  %8.2f %%  %8.2f %%  %7.2f %%  %8.0f %% %,6.0f s %,6.0f s %,6.0f s %16.2f s %6.1f s %4.0f %%",
                    first ? String.format(Locale.ROOT, "%.1f %%", 100 * row.share()) : "",
                    first ? String.format(Locale.ROOT, "%,d", row.blocks()) : "",
                    row.policy(),
                    100 * row.blockHitRatio(),
                    100 * row.tokenHitRatio(),
                    100 * row.beladyHitRatio(),
                    100 * row.gapClosed(),
                    row.prefillSecondsSaved(),
                    row.loadSeconds(),
                    row.savedLessLoadingSeconds(),
                    row.ttftP50Seconds(),
                    row.ttftP99Seconds(),
                    100 * row.occupancy()));
        }
    }
}
