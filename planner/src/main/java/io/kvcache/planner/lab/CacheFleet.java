package io.kvcache.planner.lab;

import io.kvcache.planner.lab.RequestRouter.RoutingPolicy;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import java.util.List;

/// Instances with a private LRU cache each, all of one size, and a route by which requests come to them.
final class CacheFleet {

    private final List<Trace> parts;
    private final List<LruCurve> curves;
    private final long accesses;

    CacheFleet(Trace trace, int instances, RoutingPolicy routingPolicy, long seed) {
        parts = new RequestRouter(trace, instances).split(routingPolicy, seed);
        curves = parts.stream()
                .map(part -> new LruCurve(new PrefixForest(part, BlockCountingRule.FULL_BLOCKS), 0))
                .toList();
        accesses = curves.stream().mapToLong(LruCurve::accesses).sum();
    }

    /// Returns the share of full blocks found, when each instance has room for this many.
    double hitRatio(int blocksEach) {
        long hits = curves.stream().mapToLong(curve -> curve.hits(blocksEach)).sum();
        return accesses == 0 ? 0 : (double) hits / accesses;
    }

    /// Returns the hit ratio with memory for everything.
    double ceiling() {
        return hitRatio(Integer.MAX_VALUE);
    }

    /// The least capacity of each in blocks with at least this hit ratio, or -1 when there is none.
    int blocksPerInstanceFor(double hitRatio) {
        if (hitRatio > ceiling()) {
            return -1;
        }
        long low = 0;
        long high = Integer.MAX_VALUE;
        while (low < high) {
            long middle = (low + high) / 2;
            if (hitRatio((int) middle) >= hitRatio) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return (int) low;
    }

    /// Prompt tokens of the instance that gets the most, over the mean.
    double maxLoadRatio() {
        long[] tokens =
                parts.stream().mapToLong(part -> part.totals().inputTokens()).toArray();
        long most = 0;
        double sum = 0;
        for (long each : tokens) {
            most = Math.max(most, each);
            sum += (double) each;
        }
        return sum == 0 ? 1 : most * tokens.length / sum;
    }
}
