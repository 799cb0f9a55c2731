package io.kvcache.planner.cli;

import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.planner.cli.PlanningOptions.FormatOption;
import io.kvcache.planner.cli.PlanningOptions.ModelOption;
import io.kvcache.planner.cli.PlanningOptions.PolicyOptions;
import io.kvcache.planner.cli.PlanningOptions.SeedsOption;
import io.kvcache.planner.cli.PlanningOptions.TraceOption;
import io.kvcache.planner.cli.ReplayOptions.ReplayCapacities;
import io.kvcache.planner.cli.ReplayOptions.ReplayDiskOption;
import io.kvcache.planner.model.ModelProfile;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.ReplayComparison;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceDigest;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.server.cli.CommandLineBuilder.OptionsElsewhere;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache replay`: what share of a trace's blocks a cache of some size would have had, policy by policy.
///
/// Replays metadata only, unless `--bytes` or `--disk` asks for the real store; see [StoreReplayRunner] and
/// [DiskReplayRunner].
@Command(
        name = "replay",
        description = "Replay a request trace: hit ratios by policy and capacity, beside Belady's bound.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class ReplayCommand implements Callable<Integer>, OptionsElsewhere {

    @Mixin
    private final CommandIo io = new CommandIo();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Mixin
    private final PolicyOptions policies = new PolicyOptions();

    @Option(
            names = "--blocks",
            paramLabel = "N",
            split = ",",
            description = "Capacities in blocks of the trace."
                    + " Default: of 1000, 5000, 10000, 20000 and 50000 those below its distinct blocks, and the next.")
    private List<Integer> blocks = new ArrayList<>();

    @Option(names = "--capacity", paramLabel = "SIZE", split = ",", description = "Capacities in bytes: 64GiB,1TiB.")
    private List<String> capacities = new ArrayList<>();

    @Mixin
    private final ModelOption model = new ModelOption();

    @Option(
            names = "--warmup",
            paramLabel = "N",
            description = "Leading requests that are replayed but not counted. Default: 0.")
    private int warmup;

    @Option(
            names = "--rule",
            paramLabel = "RULE",
            defaultValue = "reference",
            description = "reference: every id is a block. full-blocks: as the store does, never a partial block."
                    + " Or both. Default: ${DEFAULT-VALUE}.")
    private String rule = "";

    @Option(
            names = "--malformed",
            paramLabel = "skip|refuse",
            defaultValue = "refuse",
            description = "Reaction to a line that is not a request. Default: ${DEFAULT-VALUE}.")
    private String malformed = "";

    private static final List<Column> COLUMNS = List.of(
            Column.key("rule"),
            Column.key("blocks"),
            Column.key("policy"),
            Column.percent("block hits", "blockHitRatio"),
            Column.percent("token hits", "tokenHitRatio"),
            Column.percent("Belady", "beladyHitRatio"),
            Column.percent("with bypass", "beladyBypassHitRatio"),
            Column.percent("of the gap", "gapClosed"),
            Column.bytes("bytes", "bytes"),
            Column.seconds("seconds", "seconds"));

    private static final ByteSizeText MIN_DEVICE_SIZE = new ByteSizeText(1 << 20);

    @Option(
            names = "--bytes",
            paramLabel = "SIZE",
            description = "Drive the real store with blocks of this many bytes and verify all that comes back."
                    + " Default policy then: lru.")
    private String bytes = "";

    @Option(
            names = "--disk",
            paramLabel = "DIR:SIZE",
            description = "Drive the real store with host memory of --blocks and a disk tier below it, in a directory"
                    + " that is empty or does not exist: of SIZE bytes, or with 20000blocks alive at most."
                    + " Default --bytes then: 64KiB.")
    private String disk = "";

    @Option(
            names = "--device",
            paramLabel = "SIZE",
            description = "With --disk: a device tier that an engine reads before the disk, simulated in host memory;"
                    + " at least 1MiB. Default: none.")
    private String device = "";

    @Option(
            names = "--admission",
            paramLabel = "RULE",
            defaultValue = "always,second-hit",
            description = "Rules for the blocks to write to the disk; one replay each. Default: ${DEFAULT-VALUE}.")
    private String admission = "";

    @Mixin
    private final FormatOption format = new FormatOption();

    @Mixin
    private final SeedsOption seeds = new SeedsOption();

    @Override
    public Map<String, String> optionsElsewhere() {
        return Map.of(
                "--look-ahead", "kvcache lab --look-ahead",
                "--one-per-session", "kvcache lab --one-per-session",
                "--sensitivity", "kvcache lab --sensitivity",
                "--share", "kvcache lab --share");
    }

    @Override
    public Integer call() throws IOException {
        ReplayOptions asked = choices();
        PrintWriter errors = io.err();
        if (asked.model().isPresent()) {
            model.printRemarks(errors);
        }
        TraceReader reader = new TraceReader(
                asked.malformed(),
                line -> errors.println("kvcache: skipped line " + line.number() + ": " + line.reason()));
        try (ProgressLine progressLine = new ProgressLine(errors)) {
            PlanningRows rows = new PlanningRows(io, new RowPrinter(io, asked.format()), asked.traces(), columns());
            ReplayOptions choices = asked;
            boolean right = true;
            for (TraceSource source : asked.traces()) {
                progressLine.update("reading the trace");
                Trace read = source.load(reader);
                read.partialBlockRemark().ifPresent(remark -> errors.println("kvcache: " + remark));
                choices = choices.forTraceOf(read.totals().distinctBlocks());
                check(choices.capacities(), read);
                String sha256 = TraceDigest.of(source, read);
                rows.beginRun(source, sha256);
                StoreReplayRunner.Output output = new StoreReplayRunner.Output(io, rows, read, progressLine);
                for (BlockCountingRule each : choices.rules()) {
                    right &= replay(read, each, choices, output);
                }
                rows.endRun(progressLine);
            }
            rows.finish();
            return right ? 0 : 1;
        }
    }

    private List<Column> columns() {
        return !real() ? COLUMNS : disk.isEmpty() ? StoreReplayRunner.COLUMNS : DiskReplayRunner.COLUMNS;
    }

    private boolean replay(Trace read, BlockCountingRule each, ReplayOptions choices, StoreReplayRunner.Output output)
            throws IOException {
        if (!real()) {
            byMetadata(read, each, choices, output);
            return true;
        }
        PrefixForest forest = new PrefixForest(read, each);
        int blockBytes = (int) blockBytes().bytes();
        return disk.isEmpty()
                ? new StoreReplayRunner(choices, blockBytes, output).run(forest, warmup)
                : new DiskReplayRunner(
                                choices, ReplayDiskOption.parse(disk, admission), blockBytes, deviceBytes(), output)
                        .run(forest, warmup);
    }

    /// Returns whether the store itself is driven.
    private boolean real() {
        return !bytes.isEmpty() || !disk.isEmpty();
    }

    private long deviceBytes() {
        if (device.isEmpty()) {
            return 0;
        }
        ByteSizeText size = ByteSizeText.parse(device);
        if (disk.isEmpty() || size.bytes() < MIN_DEVICE_SIZE.bytes()) {
            throw new IllegalArgumentException(
                    "--device is '" + device + "', must be: " + MIN_DEVICE_SIZE + " and up, with --disk");
        }
        return size.bytes();
    }

    private ByteSizeText blockBytes() {
        return bytes.isEmpty() ? ReplayDiskOption.DEFAULT_BLOCK : ByteSizeText.parse(bytes);
    }

    private void byMetadata(
            Trace read, BlockCountingRule each, ReplayOptions choices, StoreReplayRunner.Output output) {
        PlanningRows rows = output.rows();
        Trace.Totals totals = read.totals();
        rows.head(
                "%s: %,d requests, %,d blocks of %d tokens, %,d distinct; rule: %s%s",
                read.name(),
                totals.requests(),
                totals.blockAccesses(),
                totals.blockTokens(),
                totals.distinctBlocks(),
                each.commandName(),
                choices.model().map(size -> "; bytes of " + size.label()).orElse(""));
        ReplayComparison comparison = new ReplayComparison(new PrefixForest(read, each), warmup);
        for (int capacity : choices.capacities().blocks(read.blockTokens())) {
            for (SimulatedCache replay : choices.replays()) {
                output.progress().update(replay.commandName() + " at " + capacity + " blocks");
                ReplayComparison.Outcome outcome = comparison.run(replay, capacity);
                output.progress().close();
                rows.add(row(read, each, choices.model(), outcome));
            }
        }
        rows.note(
                "Belady knows the future. No policy can do better than with bypass; without it Belady has to admit every"
                        + " block, and a policy that may leave blocks out can do better.");
        rows.note("Of the gap: the way from LRU to Belady with bypass.");
        rows.note(
                "w-tinylfu, mooncake and lmcache-cost may keep a block without the blocks before it, which then cannot be a"
                        + " hit; pensieve's engine computes what is missing before it, so there it is one.");
        rows.note("");
    }

    /// One policy at one capacity. Bytes are those of so many blocks of the model's KV; null without a model.
    private ResultRow row(
            Trace read, BlockCountingRule each, Optional<ModelProfile> profile, ReplayComparison.Outcome outcome) {
        return new ResultRow()
                .put("trace", read.name())
                .put("rule", each.commandName())
                .put("warmupRequests", warmup)
                .put("policy", outcome.replay().commandName())
                .put("blocks", outcome.blocks())
                .put("model", profile.map(ModelProfile::label).orElse(""))
                .put(
                        "bytes",
                        profile.map(size -> size.kvBytesPerToken() * read.blockTokens() * outcome.blocks())
                                .orElse(null))
                .put("blockAccesses", outcome.totals().blockAccesses())
                .put("blockHits", outcome.totals().blockHits())
                .put("blockHitRatio", outcome.totals().blockHitRatio())
                .put("tokenHitRatio", outcome.totals().tokenHitRatio())
                .put("lruHitRatio", outcome.bounds().lru().blockHitRatio())
                .put("beladyHitRatio", outcome.bounds().belady().blockHitRatio())
                .put("beladyBypassHitRatio", outcome.bounds().beladyBypass().blockHitRatio())
                .put("gapClosed", outcome.shareOfGap().orElse(0))
                .put("seconds", outcome.seconds());
    }

    /// The tokens of a block of a file are known only after it has been read.
    private ReplayCapacities capacities(TraceSource source, Optional<ModelProfile> size) {
        ReplayCapacities asked = ReplayCapacities.parse(blocks, capacities, size);
        if (!(source instanceof TraceSource.File)) {
            asked.blocks(Trace.BLOCK_TOKENS);
        }
        return asked;
    }

    private void check(ReplayCapacities asked, Trace read) {
        try {
            for (int blocks : asked.blocks(read.blockTokens())) {
                if (real() && blocks > HostStoreConfig.MAX_RECORDS) {
                    throw PlanningOptions.invalidOption(
                            "--blocks",
                            String.valueOf(blocks),
                            "up to " + HostStoreConfig.MAX_RECORDS + " where the real store is driven");
                }
            }
            PlanningOptions.checkWarmup(warmup, read);
        } catch (IllegalArgumentException e) {
            throw io.usageError(e);
        }
    }

    /// The options as values, or an error that names the option's value and what it may be.
    private ReplayOptions choices() {
        return io.check(() -> {
            PlanningOptions.checkWarmup(warmup);
            TraceSource source = trace.traceSource();
            Optional<ModelProfile> size = capacities.isEmpty() ? model.profileIfGiven() : Optional.of(model.profile());
            if (real()) {
                StoreReplayRunner.check(blockBytes(), policies.names());
            }
            if (!disk.isEmpty()) {
                ReplayDiskOption.parse(disk, admission);
            }
            deviceBytes();
            return new ReplayOptions(
                    seeds.sources(source),
                    policies.replays(real() ? List.of("lru") : List.of()),
                    capacities(source, size),
                    size,
                    PlanningOptions.rules(rule),
                    PlanningOptions.malformed(malformed),
                    format.format());
        });
    }
}
