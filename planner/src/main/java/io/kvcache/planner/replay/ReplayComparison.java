package io.kvcache.planner.replay;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.HitCounter.ReplayListener;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalDouble;

/// Replays one forest against several caches and sets each beside LRU and Belady's bounds at the same capacity.
public final class ReplayComparison {

    private final PrefixForest forest;
    private final int warmup;
    private final Map<Integer, Bounds> bounds = new HashMap<>();

    /// @param warmup leading requests that are replayed but not counted
    public ReplayComparison(PrefixForest forest, int warmup) {
        this.forest = forest;
        this.warmup = warmup;
    }

    /// The hits of LRU and the best possible at one capacity.
    public record Bounds(HitTotals lru, HitTotals belady, HitTotals beladyBypass) {}

    /// One cache at one capacity.
    ///
    /// @param seconds time of this replay alone
    public record Outcome(SimulatedCache replay, int blocks, HitTotals totals, Bounds bounds, double seconds) {

        /// How much of the way from LRU to Belady with bypass this cache goes, in block hits; negative when it is
        /// worse than LRU, empty when there is nothing to gain.
        public OptionalDouble shareOfGap() {
            long gap = bounds.beladyBypass.blockHits() - bounds.lru.blockHits();
            long gained = totals.blockHits() - bounds.lru.blockHits();
            return gap <= 0 ? OptionalDouble.empty() : OptionalDouble.of((double) gained / gap);
        }
    }

    /// Runs one replay, and the bounds when this capacity is new.
    public Outcome run(SimulatedCache replay, int blocks) {
        return run(replay, blocks, ReplayListener.NONE);
    }

    /// The same, with a listener that is called for every request.
    public Outcome run(SimulatedCache replay, int blocks, ReplayListener watcher) {
        Bounds known = bounds.computeIfAbsent(blocks, this::boundsAt);
        long start = System.nanoTime();
        HitTotals totals = replay.run(forest, blocks, new HitCounter(forest, warmup, watcher));
        return new Outcome(replay, blocks, totals, known, (System.nanoTime() - start) / 1e9);
    }

    private Bounds boundsAt(int blocks) {
        return new Bounds(
                new PolicyReplay(PolicyKind.LRU).run(forest, blocks, warmup),
                new BeladyReplay(false).run(forest, blocks, warmup),
                new BeladyReplay(true).run(forest, blocks, warmup));
    }
}
