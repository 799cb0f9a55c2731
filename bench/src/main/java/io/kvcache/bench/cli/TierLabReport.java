package io.kvcache.bench.cli;

import io.kvcache.bench.lab.TierRow;
import io.kvcache.server.cli.ByteSizeText;
import java.io.PrintWriter;
import java.util.Locale;
import tools.jackson.databind.json.JsonMapper;

/// How the rows over host memory and a disk are shown.
final class TierLabReport {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    private final PrintWriter out;
    private final String format;
    private final String engine;
    private boolean begun;

    /// @param format text, json or csv
    /// @param engine what computes, for the head of a table
    TierLabReport(PrintWriter out, String format, String engine) {
        this.out = out;
        this.format = format;
        this.engine = engine;
    }

    /// One policy with one rule of admission.
    void addRow(TierRow row) {
        switch (format) {
            case "json" -> out.println(JSON.writeValueAsString(row));
            case "csv" -> {
                if (!begun) {
                    out.println(TierRow.CSV_HEAD);
                }
                out.println(row.csv());
            }
            default -> {
                if (!begun) {
                    head(row);
                }
                out.println(text(row));
            }
        }
        begun = true;
        out.flush();
    }

    private void head(TierRow row) {
        out.println(String.format(
                Locale.ROOT,
                "%s: host memory for %,d blocks (%.2f %% of the distinct ones), a disk for %,d (%.2f %%); %s",
                row.trace(),
                row.hostBlocks(),
                100 * row.hostShare(),
                row.diskBlocks(),
                100 * row.diskShare(),
                engine));
        out.println("                                    block    token       in     of    saved   moving      net"
                + "      first token    tiers taken     read from       written  blocks    bytes");
        out.println("policy         run    admission      hits     hits     host    gap  prefill            "
                + "          p50      p99   host   disk     host      disk   to disk  of put   of put");
    }

    private static String bytes(long bytes) {
        return bytes == 0 ? "0 B" : new ByteSizeText(bytes).toString();
    }

    private static String text(TierRow row) {
        return String.format(
                Locale.ROOT,
                "%-14s %-6s %-10s %6.2f %% %6.2f %% %6.2f %% %4.0f %% %,6.0f s %,6.0f s %,6.0f s %6.2f s %6.1f s"
                        + " %4.0f %% %4.0f %% %8s %9s %9s %5.1f %% %6.1f %%",
                row.policy(),
                row.run(),
                row.admission(),
                100 * row.blockHitRatio(),
                100 * row.tokenHitRatio(),
                100 * row.hostHitRatio(),
                100 * row.gapClosed(),
                row.prefillSecondsSaved(),
                row.loadSeconds(),
                row.savedLessLoadingSeconds(),
                row.ttftP50Seconds(),
                row.ttftP99Seconds(),
                100 * row.hostOccupancy(),
                100 * row.diskOccupancy(),
                bytes(row.hostBytesRead()),
                bytes(row.diskBytesRead()),
                bytes(row.diskBytesWritten()),
                100 * row.writtenOfPut(),
                100 * row.diskBytesOfPut());
    }
}
