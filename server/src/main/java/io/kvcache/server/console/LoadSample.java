package io.kvcache.server.console;

import org.jspecify.annotations.Nullable;

/// The load of an interval, of the whole server or of one tenant, as JSON has it. Null is what is not known
/// of a tenant, or of a server without disks.
///
/// @param at end of the interval, in seconds since 1970
/// @param seconds that it took
/// @param memoryHits blocks and values that look-ups found in host memory
/// @param diskHits those that they found on a disk
/// @param misses blocks and values that look-ups did not find
/// @param tokensSaved tokens of blocks, and of LMCache's chunks, that were found
/// @param memoryBytes at its end; of a tenant what it has stored, in any tier
/// @param memoryCapacityBytes of a tenant its quota, 0 without one
/// @param diskBytes alive at its end
/// @param diskWrittenBytes in the interval
/// @param diskBudgetSpent share of a day's write budget, of the disk that has least left
/// @param diskReads blocks and values that came from disks, in whole or in part
/// @param diskReadP99Micros that 99 % of these did not exceed
/// @param requests also of other JVMs
/// @param p50Micros that half of the requests did not exceed, but for those of other JVMs; null without any
/// @param evicted of a tenant values alone
/// @param missReasons look-ups that found nothing, and requests for blocks that ended early, by reason
record LoadSample(
        long at,
        double seconds,
        long memoryHits,
        long diskHits,
        long misses,
        long tokensSaved,
        long memoryBytes,
        long memoryCapacityBytes,
        @Nullable Long diskBytes,
        @Nullable Long diskCapacityBytes,
        @Nullable Long diskWrittenBytes,
        @Nullable Double diskBudgetSpent,
        @Nullable Long diskReads,
        @Nullable Long diskReadBytes,
        @Nullable Long diskReadP99Micros,
        @Nullable Long diskWrites,
        @Nullable Long diskWriteP99Micros,
        @Nullable Long requests,
        @Nullable Long p50Micros,
        @Nullable Long p99Micros,
        long evicted,
        @Nullable Integer connections,
        MissCounts missReasons) {}
