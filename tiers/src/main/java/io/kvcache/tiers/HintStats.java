package io.kvcache.tiers;

/// Outcomes of hints since the store was opened, and the pins, labels and timers held for them now. Objects
/// count as blocks.
///
/// @param taken hints that were taken
/// @param notTaken hints that were not: on nothing that is here, on too much, too far off, or without use to the policy
/// @param pins chains and objects that hints have pinned
/// @param pinnedBytes their blocks in host memory; blocks of several chains count for each
/// @param blocksLabelled blocks that got a reuse class, each time that one was said
/// @param blocksWeighed blocks that got a weight, each time that one was said
/// @param blocksWaiting blocks whose time is not over yet
/// @param blocksExpired blocks that became next victims when their time was over
/// @param sessions whose last turn is known
/// @param blocksLeft blocks that became next victims because their session went on without them
public record HintStats(
        long taken,
        long notTaken,
        long pins,
        long pinnedBytes,
        long blocksLabelled,
        long blocksWeighed,
        long blocksWaiting,
        long blocksExpired,
        long sessions,
        long blocksLeft) {}
