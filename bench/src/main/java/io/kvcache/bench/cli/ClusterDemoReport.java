package io.kvcache.bench.cli;

import io.kvcache.bench.cluster.ClientTransport;
import io.kvcache.bench.cluster.ClusterDemo;
import io.kvcache.bench.cluster.ClusterDemo.Result;
import io.kvcache.bench.cluster.ClusterDemo.Tick;
import io.kvcache.bench.cluster.ClusterReplay;
import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import java.io.IOException;
import java.util.Locale;
import java.util.function.Consumer;

/// The output of `kvcache demo --cluster`: a line a second, then the totals.
///
/// @param out takes lines
/// @param trace where the requests come from, for people
record ClusterDemoReport(Consumer<String> out, String trace) {

    /// As many as take three quarters of a minute.
    static final int REQUESTS = 3_600;

    private static final ClusterReplay.Settings SETTINGS =
            new ClusterReplay.Settings(4, 80, 4 << 10, ClientTransport.TCP);
    private static final int BAR = 30;

    /// Runs the demo.
    Result run(Trace requests) throws IOException, InterruptedException {
        line("Trace   %s: the first %,d requests", trace, requests.requests().size());
        line("Servers three processes on this host, which are starting; blocks carry 4 KiB of real bytes");
        line("");
        line("%4s %9s %7s %9s  %-" + BAR + "s", "s", "requests", "found", "possible", "found of what is possible");
        PrefixForest forest = new PrefixForest(requests, BlockCountingRule.FULL_BLOCKS);
        Result result = new ClusterDemo(forest, SETTINGS, this::print).run();
        print(result);
        return result;
    }

    private void print(Tick tick) {
        Progress progress = tick.progress();
        double share = Math.min(1, (double) progress.found() / Math.max(1, progress.possible()));
        int filled = (int) Math.round(BAR * share);
        line(
                "%4d %9d %6.1f%% %8.1f%%  %s%s  %d servers",
                tick.second(),
                progress.requests(),
                percent(progress.found(), progress.asked()),
                percent(progress.possible(), progress.asked()),
                "#".repeat(filled),
                ".".repeat(BAR - filled),
                tick.servers());
        if (!tick.event().isEmpty()) {
            line("     %s", tick.event());
        }
    }

    private void print(Result result) {
        Progress all = result.progress();
        line("");
        line(
                "Hits    %.1f %% of the blocks, of %.1f %% that an unlimited cache finds; %,d requests in %.0f s",
                percent(all.found(), all.asked()),
                percent(all.possible(), all.asked()),
                all.requests(),
                result.seconds());
        line("Errors  %,d%s", all.errors(), result.firstError() == null ? "" : ", the first: " + result.firstError());
        line("Correct %,d blocks read and compared with what was put, %,d wrong", all.found(), all.wrong());
        line("Next    ./kvcache bench cluster compares such a run with an undisturbed one; docs/cluster.md");
    }

    private static double percent(long part, long of) {
        return of == 0 ? 0 : 100.0 * part / of;
    }

    @SuppressWarnings("AnnotateFormatMethod") // the annotation lives in a library that nothing else here needs
    private void line(String format, Object... values) {
        out.accept(String.format(Locale.ROOT, format, values));
    }
}
