package io.kvcache.bench.replay;

/// What a replay counted.
///
/// @param blockAccesses blocks looked up
/// @param blockHits of those, found, counted from the start of each prompt to the first absent block
/// @param inputTokens tokens of all prompts
/// @param tokenHits of those, in hit blocks; a partial last block has fewer than a block's
/// @param squaredTokenHits sum over the requests of the square of their hit tokens, for the work of attention
public record HitTotals(long blockAccesses, long blockHits, long inputTokens, long tokenHits, double squaredTokenHits) {

    /// Hits over accesses; 0 when there were none.
    public double blockHitRatio() {
        return blockAccesses == 0 ? 0 : (double) blockHits / blockAccesses;
    }

    /// Hit tokens over prompt tokens; 0 when there were none.
    public double tokenHitRatio() {
        return inputTokens == 0 ? 0 : (double) tokenHits / inputTokens;
    }
}
