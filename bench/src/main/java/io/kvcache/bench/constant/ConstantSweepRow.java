package io.kvcache.bench.constant;

/// What half or twice of a constant changes on one trace. The fields' names are what programs rely
/// on.
///
/// @param constant its class and name
/// @param value as the source has it
/// @param factor of that
/// @param effect where it shows: `order`, `queue` or `writing`
/// @param meanPoints of block hits gained, below 0 where they are lost: the mean over capacities
/// @param worstPoints at the capacity that loses most or gains least
/// @param bestPoints at the one that gains most
/// @param savedChange share of the prefill seconds saved that is gained; 0 but for `writing`
/// @param writtenPoints of the blocks put that are written beside what was; 0 but for `writing`
public record ConstantSweepRow(
        String constant,
        String value,
        double factor,
        String effect,
        String trace,
        double meanPoints,
        double worstPoints,
        double bestPoints,
        double savedChange,
        double writtenPoints) {}
