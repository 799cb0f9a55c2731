package io.kvcache.bench.cli;

import io.kvcache.bench.cli.PlanningRows.Figure;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.replay.SimulatedCache;
import io.kvcache.bench.store.MemoryCopySpeed;
import io.kvcache.bench.store.StoreReplay;
import io.kvcache.bench.store.StoreReplay.StoreReplayResult;
import io.kvcache.bench.store.TraceChains;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.server.cli.ProgressLine;
import java.util.List;
import java.util.Locale;

/// `kvcache replay --bytes`: the same replay through the real store, with real block contents.
final class StoreReplayRunner {

    private final ReplayOptions choices;
    private final int blockBytes;
    private final Output output;

    /// The destination of the results.
    ///
    /// @param trace its name
    /// @param sha256 of the trace
    record Output(CommandIo io, PlanningRows rows, String trace, String sha256, ProgressLine progress) {

        /// Prints a result for programs or for people.
        void print(Record row, String text) {
            if (rows.isText()) {
                io.printText(text);
            } else {
                rows.add(row);
            }
        }
    }

    StoreReplayRunner(ReplayOptions choices, int blockBytes, Output output) {
        this.choices = choices;
        this.blockBytes = blockBytes;
        this.output = output;
    }

    /// Names of the fields that tell the rows of a trace apart.
    static final List<String> KEYS = List.of("rule", "blocks", "policy");

    /// What a table over several seeds shows.
    static final List<Figure> FIGURES =
            List.of(Figure.percent("block hits", "blockHitRatio"), Figure.percent("token hits", "tokenHitRatio"));

    /// One policy at one capacity. The fields' names are what programs rely on.
    private record StoreRow(
            String trace,
            String rule,
            int warmupRequests,
            String policy,
            int blocks,
            int blockBytes,
            double blockHitRatio,
            double tokenHitRatio,
            long bytesServed,
            double gigabytesPerSecond,
            double copyGigabytesPerSecond,
            long blocksServed,
            long wrongBlocks,
            long leaked,
            double seconds) {}

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
        double copy = MemoryCopySpeed.gigabytesPerSecond(blockBytes);
        boolean correct = true;
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
        StoreRow row = row(forest, settings, result, copy);
        output.print(row, text(row));
        return result.check().passed();
    }

    private StoreRow row(PrefixForest forest, StoreReplay.Settings settings, StoreReplayResult result, double copy) {
        return new StoreRow(
                output.trace,
                forest.rule().commandName(),
                settings.warmup(),
                settings.policy().commandName(),
                settings.blocks(),
                settings.blockBytes(),
                result.totals().blockHitRatio(),
                result.totals().tokenHitRatio(),
                result.bytes().served(),
                result.bytes().gigabytesPerSecond(),
                copy,
                result.check().blocksServed(),
                result.check().wrongBlocks(),
                result.check().leaked(),
                result.seconds());
    }

    private static String text(StoreRow row) {
        return String.format(
                Locale.ROOT,
                "%-8s %,8d blocks of %s  %s block hits, %s token hits (%s)  %s at %.1f GB/s"
                        + " = %.0f %% of memory copy  %,d served, %,d wrong, %,d leaked  %.1f s",
                row.policy,
                row.blocks,
                new ByteSizeText(row.blockBytes),
                PlanningRows.percent(row.blockHitRatio),
                PlanningRows.percent(row.tokenHitRatio),
                row.rule,
                row.bytesServed == 0 ? "0 B" : new ByteSizeText(row.bytesServed).toString(),
                row.gigabytesPerSecond,
                100 * row.gigabytesPerSecond / row.copyGigabytesPerSecond,
                row.blocksServed,
                row.wrongBlocks,
                row.leaked,
                row.seconds);
    }
}
