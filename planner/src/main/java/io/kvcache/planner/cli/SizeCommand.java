package io.kvcache.planner.cli;

import io.kvcache.planner.cli.PlanningOptions.CalibrationOption;
import io.kvcache.planner.cli.PlanningOptions.FormatOption;
import io.kvcache.planner.cli.PlanningOptions.GpuOption;
import io.kvcache.planner.cli.PlanningOptions.ModelOption;
import io.kvcache.planner.cli.PlanningOptions.PriceOption;
import io.kvcache.planner.cli.PlanningOptions.TraceOption;
import io.kvcache.planner.lab.CapacityPlanner;
import io.kvcache.planner.lab.CapacityPlanner.SizingResult;
import io.kvcache.planner.lab.CapacityPlanner.SizingResult.FirstTokens;
import io.kvcache.planner.lab.CapacityPlanner.SizingResult.TierMoney;
import io.kvcache.planner.lab.EngineHardware;
import io.kvcache.planner.lab.RequestRouter.RoutingPolicy;
import io.kvcache.planner.model.ModelProfile;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceDigest;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ByteSizeText;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache size`: how much memory a hit ratio takes, under LRU and under importance, tier by tier.
@Command(
        name = "size",
        description =
                "Compute the memory that a hit ratio takes on a trace, by tier. Exits with 1 if no memory is enough.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class SizeCommand implements Callable<Integer> {

    @Mixin
    private final CommandIo io = new CommandIo();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Mixin
    private final ModelOption model = new ModelOption();

    @Mixin
    private final GpuOption gpu = new GpuOption();

    @Mixin
    private final CalibrationOption calibration = new CalibrationOption();

    @Option(
            names = "--target-hit",
            paramLabel = "RATIO",
            required = true,
            description = "Wanted block hit ratio, above 0 to 1.")
    private double target;

    @Option(
            names = "--gpus",
            paramLabel = "N",
            defaultValue = "1",
            description = "Number of these GPUs; their memory less the weights is the first tier."
                    + " Default: ${DEFAULT-VALUE}.")
    private int gpus;

    @Option(
            names = "--host",
            paramLabel = "SIZE",
            defaultValue = "1TiB",
            description =
                    "Host memory for the second tier, or 0; the rest goes to disk." + " Default: ${DEFAULT-VALUE}.")
    private String host = "";

    @Mixin
    private final PriceOption price = new PriceOption();

    @Option(
            names = "--instances",
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "Also this many instances, 1 to 64, each with an LRU cache of its own, beside one shared cache.")
    private int instances;

    @Option(
            names = "--route",
            paramLabel = "RULE",
            split = ",",
            defaultValue = "random,session,prefix",
            description = "Routing of requests to the instances: random, session, prefix. Default: all three.")
    private List<String> routes = List.of();

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Seed of the random routes. Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Mixin
    private final FormatOption format = new FormatOption();

    private record SizeOptions(
            TraceSource source, CapacityPlanner.EngineConfig engine, List<CapacityPlanner.FleetConfig> fleets) {}

    @Override
    public Integer call() throws IOException {
        SizeOptions sizeOptions = sizeOptions();
        model.printRemarks(io.err());
        Trace read = TraceOption.loadTrace(sizeOptions.source, io.err());
        calibration.printRemarks(model.profile(), read, io.err());
        CapacityPlanner capacityPlanner = io.check(() -> new CapacityPlanner(read, sizeOptions.engine));
        SizingResult answer = capacityPlanner.plan(target, sizeOptions.fleets);
        PrintWriter out = io.out();
        String sha256 = TraceDigest.of(sizeOptions.source, read);
        PlanningRows rows =
                new PlanningRows(io, new RowPrinter(io, format.format()), List.of(sizeOptions.source), List.of());
        rows.beginRun(sizeOptions.source, sha256);
        switch (format.format()) {
            case JSON -> rows.add(new ResultRow().putAll(answer));
            case CSV -> new SizingRows(answer).toRows().forEach(rows::add);
            case TEXT -> {
                new SizingTextReport(out).print(answer, capacityPlanner.computeMillis());
                io.println("  " + PlanningRows.origin(sha256));
            }
        }
        out.flush();
        return answer.reachable() ? 0 : 1;
    }

    private SizeOptions sizeOptions() {
        return io.check(() -> {
            format.format();
            if (!(target > 0 && target <= 1)) {
                throw PlanningOptions.invalidOption("--target-hit", String.valueOf(target), "above 0 to 1");
            }
            if (gpus < 1 || gpus > 1000) {
                throw PlanningOptions.invalidOption("--gpus", String.valueOf(gpus), "1 to 1000");
            }
            CapacityPlanner.EngineConfig engineConfig = engineConfig();
            List<CapacityPlanner.FleetConfig> fleets = routes.stream()
                    .map(SizeCommand::route)
                    .map(routingPolicy -> new CapacityPlanner.FleetConfig(instances, routingPolicy, seed))
                    .toList();
            return new SizeOptions(trace.traceSource(), engineConfig, instances == 1 ? List.of() : fleets);
        });
    }

    /// Measured times are of an engine without memory of its own, unless its GPU is named.
    private CapacityPlanner.EngineConfig engineConfig() {
        ModelProfile served = model.profile();
        EngineHardware hardware = calibration
                .calibration()
                .map(times -> times.hardware(served.kvBytesPerToken()))
                .orElseGet(() -> EngineHardware.of(gpu.profile(), served, gpus));
        boolean deviceGiven = !calibration.isGiven() || io.isGiven("--gpu") || io.isGiven("--gpus");
        long deviceBytes = deviceGiven ? CapacityPlanner.deviceBytes(served, gpu.profile(), gpus) : 0;
        return new CapacityPlanner.EngineConfig(served, hardware, gpus, deviceBytes, hostBytes(), price.prices());
    }

    private long hostBytes() {
        return host.equals("0") ? 0 : ByteSizeText.parse(host).bytes();
    }

    private static RoutingPolicy route(String name) {
        return RoutingPolicy.named(name)
                .orElseThrow(() -> PlanningOptions.invalidOption("--route", name, RoutingPolicy.names()));
    }

    /// The results of `kvcache size` as text.
    @SuppressWarnings("AnnotateFormatMethod") // the annotation lives in a library that nothing else here needs
    private static final class SizingTextReport {

        private final PrintWriter out;

        SizingTextReport(PrintWriter out) {
            this.out = out;
        }

        /// @param computeMillis that computing a block takes
        void print(SizingResult answer, double computeMillis) {
            if (answer.reachable()) {
                line(
                        "%s: %s of the full blocks found (at most %s)",
                        answer.trace(),
                        CommandIo.percent(answer.targetHitRatio()),
                        CommandIo.percent(answer.ceiling()));
                answer.rows().forEach(row -> print(row, answer, computeMillis));
                answer.fleets().forEach(row -> print(row, answer));
            } else {
                line(
                        "%s cannot reach %s: with memory for everything, %s of its full blocks are found.",
                        answer.trace(),
                        CommandIo.percent(answer.targetHitRatio()),
                        CommandIo.percent(answer.ceiling()));
            }
            if (answer.truncated()) {
                line(
                        "%s short: the second half of the requests finds up to %s. A longer trace would show more reuse,"
                                + " and need more memory.",
                        answer.spanMinutes() > 0
                                ? String.format(Locale.ROOT, "Its %.0f minutes are", answer.spanMinutes())
                                : "The trace is",
                        CommandIo.percent(answer.laterCeiling()));
            }
        }

        private void print(SizingResult.Row row, SizingResult answer, double computeMillis) {
            line(
                    "  %-10s  %,9d blocks of %d tokens  %s of %s",
                    row.policy(), row.blocks(), answer.blockTokens(), new ByteSizeText(row.bytes()), answer.model());
            FirstTokens firstTokens = row.firstTokens();
            if (firstTokens != null) {
                line(
                        "    first token  p50 %,.2f s, p99 %,.1f s; the engine is busy for %.0f %% of the time%s",
                        firstTokens.ttftP50Seconds(),
                        firstTokens.ttftP99Seconds(),
                        100 * firstTokens.busyShare(),
                        firstTokens.busyShare() > 1 ? " and cannot keep up" : "");
            }
            for (SizingResult.Tier tier : row.tiers()) {
                if (tier.bytes() > 0) {
                    line(
                            "    %-8s  %10s  finds %s%s",
                            tier.tier(),
                            new ByteSizeText(tier.bytes()),
                            CommandIo.percent(tier.hitRatio()),
                            cost(tier, computeMillis));
                    print(tier.money());
                }
            }
        }

        private void print(@Nullable TierMoney money) {
            if (money != null) {
                line("      a month   %s", money.text());
            }
        }

        private static String cost(SizingResult.Tier tier, double computeMillis) {
            return tier.millisABlock() == 0
                    ? ""
                    : String.format(
                            Locale.ROOT,
                            ", %.1f ms to load a block, %.1f ms to compute it",
                            tier.millisABlock(),
                            computeMillis);
        }

        private void print(SizingResult.FleetRow row, SizingResult answer) {
            line(
                    "  %d instances, route %s, each a cache of its own (the busiest gets %.2f times the mean):",
                    row.instances(), row.route(), row.busiest());
            line(
                    "    with the same memory together they find %s; one that they share, %s",
                    CommandIo.percent(row.sameMemoryHitRatio()), CommandIo.percent(answer.targetHitRatio()));
            if (row.blocks() < 0) {
                line(
                        "    for %s no memory would do: at most %s",
                        CommandIo.percent(answer.targetHitRatio()), CommandIo.percent(row.ceiling()));
            } else {
                line(
                        "    for %s they need %s together",
                        CommandIo.percent(answer.targetHitRatio()), new ByteSizeText(row.bytes()));
            }
        }

        private void line(String format, Object... arguments) {
            out.println(String.format(Locale.ROOT, format, arguments));
        }
    }

    /// The rows of the answer of `kvcache size` as programs have them: a capacity of a policy in all tiers, of one
    /// tier, or of several private caches.
    ///
    /// - `ceilingHitRatio` is that with memory for everything, and `laterCeilingHitRatio` that of the second half
    ///   of the requests; `truncated` says that the trace is too short to show all reuse.
    /// - `route` is by which requests get to private caches, empty for one cache; `busiestOverMean` has the prompt
    ///   tokens of the one that gets the most.
    /// - `blocks` is null when no memory reaches the target. `hitRatio` is of all full blocks looked up, those
    ///   found in the tier.
    /// - `ttftP50Seconds` is null where the trace does not say when requests came. Money is in the currency of
    ///   `--price`, and null without it.
    private record SizingRows(SizingResult answer) {

        private record Capacity(long blocks, long bytes, double hitRatio) {}

        /// One whose target is out of reach has one row without a capacity.
        List<ResultRow> toRows() {
            List<ResultRow> rows = new ArrayList<>();
            for (SizingResult.Row policy : answer.rows()) {
                double found = policy.tiers().stream()
                        .mapToDouble(SizingResult.Tier::hitRatio)
                        .sum();
                Capacity all = new Capacity(policy.blocks(), policy.bytes(), found);
                rows.add(row(policy.policy(), null, "all", all, null, policy.firstTokens(), null));
                for (SizingResult.Tier tier : policy.tiers()) {
                    long blocks = policy.blocks() == 0 ? 0 : tier.bytes() / (policy.bytes() / policy.blocks());
                    Capacity capacity = new Capacity(blocks, tier.bytes(), tier.hitRatio());
                    rows.add(
                            row(policy.policy(), null, tier.tier(), capacity, tier.millisABlock(), null, tier.money()));
                }
            }
            answer.fleets().forEach(fleet -> rows.addAll(fleetRows(fleet)));
            if (!answer.reachable()) {
                rows.add(row("lru", null, "all", null, null, null, null));
            }
            return rows;
        }

        /// Two rows: what private caches find with the memory of the shared one, and what they need to find as
        /// much.
        private List<ResultRow> fleetRows(SizingResult.FleetRow fleet) {
            SizingResult.Row shared = answer.rows().getFirst();
            long blockBytes = shared.blocks() == 0 ? 0 : shared.bytes() / shared.blocks();
            long sameBlocks = (long) (shared.blocks() / fleet.instances()) * fleet.instances();
            Capacity same = new Capacity(sameBlocks, sameBlocks * blockBytes, fleet.sameMemoryHitRatio());
            Capacity needed =
                    fleet.blocks() >= 0 ? new Capacity(fleet.blocks(), fleet.bytes(), answer.targetHitRatio()) : null;
            return List.of(
                    row("lru", fleet, "all", same, null, null, null),
                    row("lru", fleet, "all", needed, null, null, null));
        }

        private ResultRow row(
                String policy,
                SizingResult.@Nullable FleetRow fleet,
                String tier,
                @Nullable Capacity capacity,
                @Nullable Double loadMillis,
                @Nullable FirstTokens firstTokens,
                @Nullable TierMoney money) {
            return new ResultRow()
                    .put("trace", answer.trace())
                    .put("rule", "full-blocks")
                    .put("model", answer.model())
                    .put("blockTokens", answer.blockTokens())
                    .put("targetHitRatio", answer.targetHitRatio())
                    .put("ceilingHitRatio", fleet == null ? answer.ceiling() : fleet.ceiling())
                    .put("laterCeilingHitRatio", answer.laterCeiling())
                    .put("spanMinutes", answer.spanMinutes())
                    .put("truncated", answer.truncated())
                    .put("policy", policy)
                    .put("instances", fleet == null ? 1 : fleet.instances())
                    .put("route", fleet == null ? "" : fleet.route())
                    .put("tier", tier)
                    .put("blocks", capacity == null ? null : (Long) capacity.blocks)
                    .put("bytes", capacity == null ? null : (Long) capacity.bytes)
                    .put("hitRatio", capacity == null ? null : (Double) capacity.hitRatio)
                    .put("loadMillisPerBlock", loadMillis)
                    .put("ttftP50Seconds", firstTokens == null ? null : (Double) firstTokens.ttftP50Seconds())
                    .put("ttftP99Seconds", firstTokens == null ? null : (Double) firstTokens.ttftP99Seconds())
                    .put("busyShare", firstTokens == null ? null : (Double) firstTokens.busyShare())
                    .put("busiestOverMean", fleet == null ? null : (Double) fleet.busiest())
                    .put("costPerMonth", money == null ? null : (Double) money.cost())
                    .put("gpuHoursSavedPerMonth", money == null ? null : (Double) money.gpuHoursSaved())
                    .put("savedPerMonth", money == null ? null : (Double) money.saved())
                    .put("gainPerMonth", money == null ? null : (Double) money.net());
        }
    }
}
