package io.kvcache.bench.lab;

/// LRU's hit ratio at one capacity. The fields' names are what programs rely on.
///
/// @param trace its name
/// @param rule which blocks counted
/// @param share of the trace's distinct blocks that fit
/// @param blocks capacity
/// @param bytes of that many blocks of the model's KV
/// @param blockHitRatio hits over blocks looked up, in an LRU cache
/// @param low the ratio is not below this
/// @param high nor above this
/// @param exact whether a replay gives the very same: nothing was sampled, and the longest prompt fits
/// @param sampledBlocks distinct blocks that were looked at
public record CurveRow(
        String trace,
        String rule,
        double share,
        int blocks,
        long bytes,
        double blockHitRatio,
        double low,
        double high,
        boolean exact,
        int sampledBlocks) {}
