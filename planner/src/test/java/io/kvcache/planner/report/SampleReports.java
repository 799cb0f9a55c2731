package io.kvcache.planner.report;

import io.kvcache.planner.report.HtmlReport.ReportOrigin;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceRequest;
import java.time.Instant;
import java.util.List;

/// Pages with a few rows, of a trace whose name is nasty.
final class SampleReports {

    static final String NASTY = "<script>alert(1)</script>&'\"\u2028.jsonl";

    static final String SHA_256 = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";

    private static final List<String> POLICIES =
            List.of("lru", "lfu-da", "gdsf", "slru", "s3-fifo", "sieve", "w-tinylfu", "importance", "belady-bypass");
    private static final double[] SHARES = {0.005, 0.015, 0.03, 0.06, 0.11, 0.3};

    private SampleReports() {}

    private static ReportOrigin origin(String command) {
        return new ReportOrigin(command, "1.2.3", "0123456789ab+", Instant.parse("2026-03-04T05:06:07Z"));
    }

    static Trace trace() {
        return new Trace(NASTY, List.of(new TraceRequest(0, 1024, 1, new long[] {1, 2})));
    }

    static HtmlReport lab(String command) {
        LabHtmlReport page = new LabHtmlReport();
        page.beginTrace(trace(), SHA_256);
        for (double share : SHARES) {
            for (int i = 0; i < POLICIES.size(); i++) {
                double bound = 0.1 + share;
                double lru = bound / 3;
                double gap = (i - 2) / 6.0;
                double hits = lru + gap * (bound - lru);
                page.addRow(new ResultRow()
                        .put("trace", NASTY)
                        .put("rule", "reference")
                        .put("policy", POLICIES.get(i))
                        .put("share", share)
                        .put("blocks", (int) (100_000 * share))
                        .put("blockHitRatio", hits)
                        .put("tokenHitRatio", hits)
                        .put("lruHitRatio", lru)
                        .put("beladyBypassHitRatio", bound)
                        .put("gapClosed", i == 0 ? 0 : gap)
                        .put("prefillSecondsSaved", 1000 * hits)
                        .put("loadSeconds", 50)
                        .put("savedLessLoadingSeconds", 1000 * hits - 50)
                        .put("ttftP50Seconds", 0.2)
                        .put("ttftP99Seconds", 3)
                        .put("occupancy", 0.9)
                        .put("bytesRead", 1L << 40)
                        .put("blocksPut", 5000)
                        .put("blocksDeclined", 500)
                        .put("declinedShare", 0.1)
                        .put("seconds", 0.1));
            }
        }
        return page.toHtmlReport(origin(command));
    }

    static HtmlReport tiers(String command) {
        TierHtmlReport page = new TierHtmlReport(TierHtmlReport.columns(false), trace(), SHA_256);
        for (String policy : List.of("lru", "importance")) {
            for (String admission : List.of("always", "second-hit", "value")) {
                double hits = 0.3 + 0.01 * policy.length();
                double written = 1.0 / admission.length();
                page.addRow(new ResultRow()
                        .put("trace", NASTY)
                        .put("run", "store")
                        .put("policy", policy)
                        .put("admission", admission)
                        .put("deviceBlocks", 0)
                        .put("deviceShare", 0.0)
                        .put("deviceHitRatio", 0.0)
                        .put("hostBlocks", 200)
                        .put("hostShare", 0.02)
                        .put("diskBlocks", 1000)
                        .put("diskShare", 0.1)
                        .put("blockHitRatio", hits)
                        .put("tokenHitRatio", hits)
                        .put("hostHitRatio", hits / 3)
                        .put("gapClosed", 0.1)
                        .put("prefillSecondsSaved", 1000 * hits)
                        .put("loadSeconds", 50)
                        .put("savedLessLoadingSeconds", 1000 * hits - 50)
                        .put("ttftP50Seconds", 0.2)
                        .put("ttftP99Seconds", 3)
                        .put("hostOccupancy", 0.9)
                        .put("diskOccupancy", 0.8)
                        .put("hostBytesRead", 1L << 40)
                        .put("diskBytesRead", 1L << 39)
                        .put("diskBytesWritten", 1L << 38)
                        .put("diskBlocksWritten", 100)
                        .put("writtenOfPut", written)
                        .put("diskBytesOfPut", 1.2 * written)
                        .put("wrongBlocks", 0)
                        .put("seconds", 1));
            }
        }
        return page.toHtmlReport(origin(command));
    }
}
