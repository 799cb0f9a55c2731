package io.kvcache.planner.lab;

import io.kvcache.planner.replay.ReplayComparison;
import java.util.OptionalDouble;

/// One cache at one capacity over one trace. The fields' names are what programs rely on.
///
/// @param trace its name
/// @param rule which blocks counted
/// @param policy the cache, by its command-line name
/// @param share of the trace's distinct blocks that fit
/// @param blocks capacity
/// @param blockHitRatio hits over blocks looked up
/// @param tokenHitRatio the same in tokens
/// @param lruHitRatio of LRU at this capacity, in blocks
/// @param beladyBypassHitRatio of Belady's rule with bypass, in blocks: the bound
/// @param gapClosed share of the way from LRU to the bound, 0 when there is none
/// @param prefillSecondsSaved that computing the hits would have taken
/// @param loadSeconds that moving them to the devices took
/// @param savedLessLoadingSeconds what was saved less what moving took
/// @param ttftP50Seconds until the first token
/// @param occupancy share of the capacity that was taken, the mean over the requests
/// @param bytesRead of the model's KV, from the cache to devices; nothing of it is on disk here
/// @param blocksPut into the cache
/// @param blocksDeclined that the policy did not want there
/// @param seconds that the replay took
public record LabRow(
        String trace,
        String rule,
        String policy,
        double share,
        int blocks,
        double blockHitRatio,
        double tokenHitRatio,
        double lruHitRatio,
        double beladyBypassHitRatio,
        double gapClosed,
        double prefillSecondsSaved,
        double loadSeconds,
        double savedLessLoadingSeconds,
        double ttftP50Seconds,
        double ttftP99Seconds,
        double occupancy,
        long bytesRead,
        long blocksPut,
        long blocksDeclined,
        double seconds) {

    /// The effect on an engine.
    ///
    /// @param occupancy share of the capacity
    record EngineStats(EngineSimulator.Summary engine, double occupancy, long blocksPut, long blocksDeclined) {}

    static LabRow of(
            String trace, String rule, double share, ReplayComparison.Outcome outcome, EngineStats engineStats) {
        OptionalDouble gap = outcome.shareOfGap();
        return new LabRow(
                trace,
                rule,
                outcome.replay().commandName(),
                share,
                outcome.blocks(),
                outcome.totals().blockHitRatio(),
                outcome.totals().tokenHitRatio(),
                outcome.bounds().lru().blockHitRatio(),
                outcome.bounds().beladyBypass().blockHitRatio(),
                gap.orElse(0),
                engineStats.engine.prefillSecondsSaved(),
                engineStats.engine.loadSeconds(),
                engineStats.engine.prefillSecondsSaved() - engineStats.engine.loadSeconds(),
                engineStats.engine.p50Seconds(),
                engineStats.engine.p99Seconds(),
                engineStats.occupancy,
                engineStats.engine.hostBytesRead(),
                engineStats.blocksPut,
                engineStats.blocksDeclined,
                outcome.seconds());
    }

    /// Returns the share of the blocks offered to the cache that its policy declined.
    public double declinedShare() {
        return blocksDeclined == 0 ? 0 : (double) blocksDeclined / (blocksPut + blocksDeclined);
    }
}
