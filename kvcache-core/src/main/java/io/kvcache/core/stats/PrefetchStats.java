package io.kvcache.core.stats;

/// What became of blocks and objects that were read from disk before they were asked for.
///
/// @param begun all that were
/// @param used of these, by a reader
/// @param wasted of these, left host memory unused or were not read after all
/// @param aheadBytes in host memory or on their way, and not used yet
public record PrefetchStats(long begun, long used, long wasted, long aheadBytes) {}
