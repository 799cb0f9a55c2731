package io.kvcache.planner.report;

import io.kvcache.planner.lab.LabRow;
import io.kvcache.planner.lab.TierRow;
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
                page.addRow(new LabRow(
                        NASTY,
                        "reference",
                        POLICIES.get(i),
                        share,
                        (int) (100_000 * share),
                        hits,
                        hits,
                        lru,
                        bound,
                        i == 0 ? 0 : gap,
                        1000 * hits,
                        50,
                        1000 * hits - 50,
                        0.2,
                        3,
                        0.9,
                        1L << 40,
                        5000,
                        500,
                        0.1));
            }
        }
        return page.toHtmlReport(origin(command));
    }

    static HtmlReport tiers(String command) {
        TierHtmlReport page = new TierHtmlReport(trace(), SHA_256);
        for (String policy : List.of("lru", "importance")) {
            for (String admission : List.of("always", "second-hit", "value")) {
                double hits = 0.3 + 0.01 * policy.length();
                double written = 1.0 / admission.length();
                page.addRow(new TierRow(
                        NASTY,
                        "store",
                        policy,
                        admission,
                        200,
                        0.02,
                        1000,
                        0.1,
                        hits,
                        hits,
                        hits / 3,
                        0.1,
                        1000 * hits,
                        50,
                        1000 * hits - 50,
                        0.2,
                        3,
                        0.9,
                        0.8,
                        1L << 40,
                        1L << 39,
                        1L << 38,
                        100,
                        written,
                        1.2 * written,
                        0,
                        1));
            }
        }
        return page.toHtmlReport(origin(command));
    }
}
