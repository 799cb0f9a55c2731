package io.kvcache.bench.replay;

import io.kvcache.bench.trace.Trace;

/// Counts the hits of a replay's requests after the first few.
final class HitCounter {

    private final TraceForest forest;
    private final int warmup;
    private long blockAccesses;
    private long blockHits;
    private long inputTokens;
    private long tokenHits;

    /// @param warmup leading requests that are replayed but not counted
    HitCounter(TraceForest forest, int warmup) {
        this.forest = forest;
        this.warmup = warmup;
    }

    /// @param resident leading blocks of the request that are resident
    void count(int request, int resident) {
        if (request >= warmup) {
            int hits = Math.min(resident, forest.lookedUp(request));
            int tokens = forest.inputTokens(request);
            blockAccesses += forest.lookedUp(request);
            blockHits += hits;
            inputTokens += tokens;
            tokenHits += Math.min((long) hits * Trace.BLOCK_TOKENS, tokens);
        }
    }

    HitTotals totals() {
        return new HitTotals(blockAccesses, blockHits, inputTokens, tokenHits);
    }
}
