package io.kvcache.planner.lab;

import io.kvcache.planner.lab.EngineSimulator.EngineFeed;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter.ReplayListener;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.ReplayComparison;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import java.util.List;
import java.util.function.Consumer;

/// Replays one trace against caches at capacities that are shares of its distinct blocks.
public final class PolicyComparison {

    private final Trace trace;
    private final PrefixForest forest;
    private final ReplayComparison comparison;
    private final EngineHardware hardware;
    private final int warmup;

    /// @param hardware of the engine that the blocks are found for, in host memory
    /// @param rule which blocks count
    /// @param warmup leading requests that are replayed but not counted, and that the engine does not get
    public PolicyComparison(Trace trace, EngineHardware hardware, BlockCountingRule rule, int warmup) {
        this.trace = trace;
        this.hardware = hardware;
        this.warmup = warmup;
        forest = new PrefixForest(trace, rule);
        comparison = new ReplayComparison(forest, warmup);
    }

    /// Runs all caches at all capacities, one after another.
    ///
    /// @param shares of the distinct blocks, above 0 to 1
    /// @param each told of every outcome
    public void run(List<SimulatedCache> caches, List<Double> shares, Consumer<ResultRow> each) {
        for (double share : shares) {
            for (SimulatedCache cache : caches) {
                EngineReplay engineReplay = new EngineReplay(blocks(share));
                ReplayComparison.Outcome outcome = comparison.run(cache, blocks(share), engineReplay);
                each.accept(engineReplay.row(share, outcome));
            }
        }
    }

    /// A share of the distinct blocks, at least one.
    public int blocks(double share) {
        return (int) Math.max(1, Math.round(share * forest.nodeCount()));
    }

    /// One replay, as an engine meets it.
    private final class EngineReplay implements ReplayListener {

        private final EngineFeed engineFeed = new EngineFeed(trace, hardware, warmup);
        private final Occupancy occupancy = new Occupancy();
        private final int capacity;
        private long put;
        private long declined;

        EngineReplay(int capacity) {
            this.capacity = capacity;
        }

        @Override
        public void onFound(int request, int blocks) {
            int hits = Math.min(blocks, forest.lookupBlocks(request));
            engineFeed.serve(request, hits, hits);
        }

        @Override
        public void onServed(int request, int added, int held) {
            put += added;
            occupancy.add(held, capacity);
        }

        @Override
        public void onDeclined(int request, int blocks) {
            declined += blocks;
        }

        /// - `share` and `blocks` are the capacity, of the trace's distinct blocks; hit ratios are of those
        ///   looked up.
        /// - `gapClosed` is the share of the way from LRU to the bound, Belady's rule with bypass; 0 when
        ///   there is none.
        /// - `prefillSecondsSaved` is what computing the hits would have taken, `loadSeconds` what moving
        ///   them took.
        /// - `occupancy` is the share of the capacity that was taken, the mean over the requests.
        /// - `bytesRead` is of the model's KV, from the cache to devices; nothing of it is on disk here.
        /// - `declinedShare` is of the blocks offered to the cache. `seconds` is how long the replay took.
        ResultRow row(double share, ReplayComparison.Outcome outcome) {
            EngineSimulator.Summary engine = engineFeed.summary();
            return new ResultRow()
                    .put("trace", trace.name())
                    .put("rule", forest.rule().commandName())
                    .put("policy", outcome.replay().commandName())
                    .put("share", share)
                    .put("blocks", outcome.blocks())
                    .put("blockHitRatio", outcome.totals().blockHitRatio())
                    .put("tokenHitRatio", outcome.totals().tokenHitRatio())
                    .put("lruHitRatio", outcome.bounds().lru().blockHitRatio())
                    .put("beladyBypassHitRatio", outcome.bounds().beladyBypass().blockHitRatio())
                    .put("gapClosed", outcome.shareOfGap().orElse(0))
                    .put("prefillSecondsSaved", engine.prefillSecondsSaved())
                    .put("loadSeconds", engine.loadSeconds())
                    .put("savedLessLoadingSeconds", engine.prefillSecondsSaved() - engine.loadSeconds())
                    .put("ttftP50Seconds", engine.p50Seconds())
                    .put("ttftP99Seconds", engine.p99Seconds())
                    .put("occupancy", occupancy.mean())
                    .put("bytesRead", engine.hostBytesRead())
                    .put("blocksPut", put)
                    .put("blocksDeclined", declined)
                    .put("declinedShare", declined == 0 ? 0.0 : (double) declined / (put + declined))
                    .put("seconds", outcome.seconds());
        }
    }

    /// How full a tier was: the mean, over the requests, of the share that was taken when one had been
    /// served.
    static final class Occupancy {

        private double sum;
        private long requests;

        /// A request has been served.
        void add(long taken, long capacity) {
            sum += capacity == 0 ? 0 : (double) taken / (double) capacity;
            requests++;
        }

        /// The mean, 0 when nothing was served.
        double mean() {
            return requests == 0 ? 0 : sum / requests;
        }
    }
}
