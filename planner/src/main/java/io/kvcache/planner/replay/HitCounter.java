package io.kvcache.planner.replay;

/// Counts the hits of a replay's requests after the first few.
public final class HitCounter {

    private final PrefixForest forest;
    private final int warmup;
    private final ReplayListener watcher;
    private long blockAccesses;
    private long blockHits;
    private long inputTokens;
    private long tokenHits;
    private double squaredTokenHits;

    /// @param warmup leading requests that are replayed but not counted
    public HitCounter(PrefixForest forest, int warmup) {
        this(forest, warmup, ReplayListener.NONE);
    }

    /// @param warmup leading requests that are replayed but not counted
    /// @param watcher told of all requests
    public HitCounter(PrefixForest forest, int warmup, ReplayListener watcher) {
        this.forest = forest;
        this.warmup = warmup;
        this.watcher = watcher;
    }

    /// Counts one request.
    ///
    /// @param resident leading blocks of the request that are resident
    public void onRequest(int request, int resident) {
        watcher.onFound(request, resident);
        if (request >= warmup) {
            int hits = Math.min(resident, forest.lookupBlocks(request));
            int tokens = forest.inputTokens(request);
            blockAccesses += forest.lookupBlocks(request);
            blockHits += hits;
            inputTokens += tokens;
            long hitTokens = Math.min((long) hits * forest.blockTokens(), tokens);
            tokenHits += hitTokens;
            squaredTokenHits += (double) hitTokens * hitTokens;
        }
    }

    /// The request that was counted last has been served.
    ///
    /// @param put blocks that were put for it
    /// @param held blocks that the cache holds now
    public void onServed(int request, int put, int held) {
        watcher.onServed(request, put, held);
    }

    /// A policy has declined the rest of a request.
    void onDeclined(int request, int blocks) {
        watcher.onDeclined(request, blocks);
    }

    /// A policy has evicted a block.
    void onEvicted(int node) {
        watcher.onEvicted(node);
    }

    /// The counts so far.
    public HitTotals totals() {
        return new HitTotals(blockAccesses, blockHits, inputTokens, tokenHits, squaredTokenHits);
    }

    /// Hears of each request of a replay, those too that do not count.
    public interface ReplayListener {

        /// A listener that ignores all events.
        ReplayListener NONE = new ReplayListener() {};

        /// A request has looked its blocks up.
        ///
        /// @param blocks that it found
        default void onFound(int request, int blocks) {}

        /// A request was served.
        ///
        /// @param put blocks that were put for it
        /// @param held blocks that the cache holds now
        default void onServed(int request, int put, int held) {}

        /// A policy has declined the rest of a request.
        ///
        /// @param blocks that were not put
        default void onDeclined(int request, int blocks) {}

        /// A policy has evicted a block. Only replays of an [io.kvcache.core.policy.EvictionPolicy] tell.
        ///
        /// @param node of the trace's forest
        default void onEvicted(int node) {}
    }

    /// The counts of a replay.
    ///
    /// @param blockAccesses blocks looked up
    /// @param blockHits of those, found, counted from the start of each prompt to the first absent block
    /// @param inputTokens tokens of all prompts
    /// @param tokenHits of those, in hit blocks; a partial last block has fewer than a block's
    /// @param squaredTokenHits sum over the requests of the square of their hit tokens, for the work of attention
    public record HitTotals(
            long blockAccesses, long blockHits, long inputTokens, long tokenHits, double squaredTokenHits) {

        /// Hits over accesses; 0 when there were none.
        public double blockHitRatio() {
            return blockAccesses == 0 ? 0 : (double) blockHits / blockAccesses;
        }

        /// Hit tokens over prompt tokens; 0 when there were none.
        public double tokenHitRatio() {
            return inputTokens == 0 ? 0 : (double) tokenHits / inputTokens;
        }
    }
}
