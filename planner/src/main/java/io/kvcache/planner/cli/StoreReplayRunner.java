package io.kvcache.planner.cli;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.store.StoreReplay;
import io.kvcache.planner.store.StoreReplay.StoreReplayResult;
import io.kvcache.planner.store.TraceChains;
import io.kvcache.planner.trace.Trace;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.server.cli.ProgressLine;
import java.util.List;

/// `kvcache replay --bytes`: the same replay through the real store, with real block contents.
final class StoreReplayRunner {

    private final ReplayOptions choices;
    private final int blockBytes;
    private final Output output;

    /// The destination of the results.
    record Output(CommandIo io, PlanningRows rows, Trace trace, ProgressLine progress) {}

    StoreReplayRunner(ReplayOptions choices, int blockBytes, Output output) {
        this.choices = choices;
        this.blockBytes = blockBytes;
        this.output = output;
    }

    static final List<Column> COLUMNS = List.of(
            Column.key("rule"),
            Column.key("blocks"),
            Column.key("policy"),
            Column.percent("block hits", "blockHitRatio"),
            Column.percent("token hits", "tokenHitRatio"),
            Column.bytes("served", "bytesServed"),
            Column.number("GB/s", "gigabytesPerSecond"),
            Column.number("copy GB/s", "copyGigabytesPerSecond"),
            Column.count("blocks served", "blocksServed"),
            Column.count("wrong", "wrongBlocks"),
            Column.count("leaked", "leaked"),
            Column.seconds("seconds", "seconds"));

    /// @throws IllegalArgumentException when a block cannot have the size, or a policy is not one of the store's
    static void check(ByteSizeText size, List<String> policies) {
        if (size.bytes() > BlockShape.MAX_BYTES) {
            throw new IllegalArgumentException(
                    "--bytes is '" + size + "', must be: up to " + new ByteSizeText(BlockShape.MAX_BYTES));
        }
        TraceChains.shapeOf((int) size.bytes());
        for (String policy : policies) {
            if (EvictionPolicies.find(policy).isEmpty()) {
                throw new IllegalArgumentException("--policy is '" + policy
                        + "', must be one of the store's own with --bytes: " + EvictionPolicies.names());
            }
        }
    }

    /// Runs every policy at every capacity.
    ///
    /// @return whether every byte was right and nothing leaked
    boolean run(PrefixForest forest, int warmup) {
        double copy = StoreReplay.copyGigabytesPerSecond(blockBytes);
        boolean correct = true;
        output.rows.head("%s: blocks of %s", output.trace.name(), new ByteSizeText(blockBytes));
        for (int blocks : choices.capacities().blocks(forest.blockTokens())) {
            for (SimulatedCache each : choices.replays()) {
                if (each instanceof PolicyReplay policy) {
                    correct &=
                            replay(forest, new StoreReplay.Settings(policy.kind(), blocks, blockBytes, warmup), copy);
                }
            }
        }
        return correct;
    }

    private boolean replay(PrefixForest forest, StoreReplay.Settings settings, double copy) {
        String what = settings.policy().commandName() + " at " + settings.blocks() + " blocks";
        StoreReplayResult result = new StoreReplay(forest, settings)
                .run(request -> output.progress.update(what + ": request " + request + " of " + forest.requestCount()));
        output.progress.close();
        output.rows.add(new ResultRow()
                .put("trace", output.trace.name())
                .put("rule", forest.rule().commandName())
                .put("warmupRequests", settings.warmup())
                .put("policy", settings.policy().commandName())
                .put("blocks", settings.blocks())
                .put("blockBytes", settings.blockBytes())
                .put("blockHitRatio", result.totals().blockHitRatio())
                .put("tokenHitRatio", result.totals().tokenHitRatio())
                .put("bytesServed", result.bytes().served())
                .put("gigabytesPerSecond", result.bytes().gigabytesPerSecond())
                .put("copyGigabytesPerSecond", copy)
                .put("blocksServed", result.check().blocksServed())
                .put("wrongBlocks", result.check().wrongBlocks())
                .put("leaked", result.check().leaked())
                .put("seconds", result.seconds()));
        return result.check().passed();
    }
}
