package io.kvcache.bench.cli;

import com.sun.management.OperatingSystemMXBean;
import io.kvcache.bench.cli.DemoReport.DemoResult;
import io.kvcache.bench.cli.DemoReport.ReplayDemo;
import io.kvcache.bench.cluster.ClientTransport;
import io.kvcache.bench.cluster.ClusterDemo;
import io.kvcache.bench.cluster.ClusterDemo.Result;
import io.kvcache.bench.cluster.ClusterDemo.Tick;
import io.kvcache.bench.cluster.ClusterReplay;
import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.bench.gpu.GpuDemo;
import io.kvcache.planner.cli.CommandIo;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.server.cli.ProgressLine;
import io.kvcache.server.cli.Version;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache demo`: the main job on one screen.
@Command(
        name = "demo",
        description = {
            "Replay a request trace through the store with real bytes, and say what it means.",
            "Then kill a process that has a disk tier, and show what the next one finds."
        },
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class DemoCommand implements Callable<Integer> {

    /// Half a GiB of the store's memory at 64 KiB a block, which leaves room for everything else in 2 GiB.
    private static final int STORE_BLOCKS = 5_000;

    private static final List<Integer> CAPACITIES = List.of(500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000);

    private static final String DEFAULT_TRACE = "conversation";

    /// Most that the store's memory may take, so that the demo stays within 2 GiB.
    private static final long MAX_BYTES = 1L << 30;

    @Mixin
    private final CommandIo io = new CommandIo();

    @Option(
            names = "--trace",
            paramLabel = "TRACE",
            defaultValue = "",
            description = "A file in the format of Mooncake, Qwen-Bailian or token ids, or"
                    + " conversation, synthetic, generated[:SEED], popular[:SEED], hostile[:SEED],"
                    + " agents[:SEED] or mixed[:SEED]."
                    + " Default: conversation when it is found, else generated.")
    private String trace = "";

    @Option(
            names = "--bytes",
            paramLabel = "SIZE",
            defaultValue = "64KiB",
            description = "Real bytes of a block. Default: ${DEFAULT-VALUE}.")
    private String bytes = "";

    @Option(
            names = "--blocks",
            paramLabel = "N",
            defaultValue = "" + STORE_BLOCKS,
            description = "Capacity of the run with real bytes. Default: ${DEFAULT-VALUE}.")
    private int blocks;

    @Option(names = "--json", description = "Print one JSON object instead of text.")
    private boolean json;

    @Option(names = "--gpu", description = "Show a store with the first GPU below it instead, if there is one.")
    private boolean gpu;

    @Option(
            names = "--cluster",
            description = "Show a cluster of three servers of which one is killed and started again instead; takes"
                    + " --trace and --json alone.")
    private boolean cluster;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (cluster) {
            refuseWithCluster("--bytes", "--blocks", "--gpu");
        }
        if (gpu) {
            return demoGpu();
        }
        if (cluster) {
            return demoCluster();
        }
        ReplayDemo.Settings settings = settings();
        if (!json) {
            io.println(DemoReport.heading(Version.text(), hostBytes()));
        }
        Trace read = readTrace();
        read.partialBlockRemark().ifPresent(remark -> io.err().println("kvcache: " + remark));
        DemoResult result;
        try (ProgressLine progressLine = new ProgressLine(io.err())) {
            result = new ReplayDemo(read, settings, progressLine::update).run();
        }
        if (json) {
            io.printJson(DemoReport.toJson(result));
        } else {
            new DemoReport(io, result).print();
        }
        return result.passed() ? 0 : 1;
    }

    private void refuseWithCluster(String... options) {
        for (String option : options) {
            if (io.isGiven(option)) {
                throw io.usageError("--cluster takes --trace and --json alone, not " + option);
            }
        }
    }

    private Trace readTrace() throws IOException {
        TraceReader reader = new TraceReader(
                MalformedLine.Handling.SKIP,
                line -> io.err().println("kvcache: skipped line " + line.number() + ": " + line.reason()));
        return TraceSource.parse(source()).load(reader);
    }

    private int demoCluster() throws IOException, InterruptedException {
        io.check(() -> TraceSource.parse(source()));
        if (!json) {
            io.println(DemoReport.heading(Version.text(), hostBytes()));
        }
        Trace read = readTrace().firstRequests(ClusterDemoReport.REQUESTS);
        ClusterDemoReport report = new ClusterDemoReport(json ? _ -> {} : io::printText, title());
        ClusterDemo.Result result = report.run(read);
        if (json) {
            io.printJson(result);
        }
        return result.passed() ? 0 : 1;
    }

    private int demoGpu() {
        GpuDemo.Result result = GpuDemo.run();
        if (json) {
            io.printJson(result);
        } else {
            io.println(result.describe());
        }
        return result.passed() ? 0 : 1;
    }

    private ReplayDemo.Settings settings() {
        return io.check(() -> {
            long blockBytes = ByteSizeText.parse(bytes).bytes();
            if (blocks < 1 || blockBytes > MAX_BYTES / blocks) {
                throw new IllegalArgumentException("--blocks " + blocks + " of --bytes " + bytes
                        + ": the demo takes from 1 block to 1 GiB in all; replay --bytes takes more");
            }
            TraceSource.parse(source());
            return new ReplayDemo.Settings(source(), title(), CAPACITIES, blocks, (int) blockBytes);
        });
    }

    private String source() {
        if (!trace.isEmpty()) {
            return trace;
        }
        return new TraceFinder().find(DEFAULT_TRACE).isPresent() ? DEFAULT_TRACE : "generated";
    }

    private String title() {
        String source = source();
        if (source.startsWith("generated")) {
            return source + " (made up; the real one: conversation_trace.jsonl of kvcache-ai/Mooncake into "
                    + "shared/traces)";
        }
        return List.of(DEFAULT_TRACE, "synthetic").contains(source) ? source + ", Mooncake FAST'25" : source;
    }

    private static long hostBytes() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getTotalMemorySize();
    }

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
            line(
                    "Trace   %s: the first %,d requests",
                    trace, requests.requests().size());
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
            line(
                    "Errors  %,d%s",
                    all.errors(), result.firstError() == null ? "" : ", the first: " + result.firstError());
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
}
