package io.kvcache.planner.lab;

import io.kvcache.planner.replay.HitCounter.HitTotals;

/// One policy over host memory and a disk, over one trace. The fields' names are what programs rely
/// on.
///
/// @param run `store` where the store itself was driven, with real blocks and a real disk; `model`
///     where caches without blocks stood in for both tiers
/// @param admission what goes to disk; a model writes all that is put
/// @param hostShare of the trace's distinct blocks that fit host memory, which comes in whole slabs
/// @param diskShare of them that may be alive on disk
/// @param blockHitRatio hits in both tiers over blocks looked up
/// @param tokenHitRatio the same in tokens
/// @param hostHitRatio of the blocks looked up, those in host memory when the request came
/// @param gapClosed share of the way from LRU over LRU to Belady with room for both tiers' blocks,
///     in blocks
/// @param prefillSecondsSaved that computing the hits would have taken
/// @param loadSeconds that moving them took
/// @param savedLessLoadingSeconds what was saved less what moving took; below 0 where computing is
///     faster
/// @param ttftP50Seconds until the first token
/// @param hostOccupancy share of host memory that was taken, the mean over the requests
/// @param diskOccupancy the same of the disk's room for blocks that are alive
/// @param hostBytesRead of the model's KV, from host memory to devices, without what came from disk
/// @param diskBytesRead of the model's KV, from disk
/// @param diskBytesWritten likewise, with tables and what was written again to make room; a model
///     has neither
/// @param diskBlocksWritten blocks written to disk, once or more
/// @param writtenOfPut of the blocks that were put, which a write-through store would all write
/// @param diskBytesOfPut bytes that the disk was given for each byte of blocks that were put;
///     beside that of the row with `always`
/// @param wrongBlocks whose bytes were not those that were put
/// @param seconds that the run took
public record TierRow(
        String trace,
        String run,
        String policy,
        String admission,
        int hostBlocks,
        double hostShare,
        int diskBlocks,
        double diskShare,
        double blockHitRatio,
        double tokenHitRatio,
        double hostHitRatio,
        double gapClosed,
        double prefillSecondsSaved,
        double loadSeconds,
        double savedLessLoadingSeconds,
        double ttftP50Seconds,
        double ttftP99Seconds,
        double hostOccupancy,
        double diskOccupancy,
        long hostBytesRead,
        long diskBytesRead,
        long diskBytesWritten,
        long diskBlocksWritten,
        double writtenOfPut,
        double diskBytesOfPut,
        long wrongBlocks,
        double seconds) {

    /// The policies and capacities of a run.
    ///
    /// @param distinctBlocks of the trace
    record Setting(
            String trace,
            String run,
            String policy,
            String admission,
            int hostBlocks,
            int diskBlocks,
            int distinctBlocks) {}

    /// The hits, and the fill level of the tiers.
    record Found(HitTotals totals, long hostHits, double gapClosed, double hostOccupancy, double diskOccupancy) {}

    /// The writes to the disk.
    ///
    /// @param bytes of the model's KV, all in
    /// @param blocks once or more
    record Written(long bytes, long blocks, double ofPut, double bytesOfPut) {}

    /// @param check wrong blocks, and the seconds of the run
    static TierRow of(Setting setting, Found found, EngineSimulator.Summary engine, Written written, Check check) {
        long accesses = found.totals.blockAccesses();
        return new TierRow(
                setting.trace,
                setting.run,
                setting.policy,
                setting.admission,
                setting.hostBlocks,
                (double) setting.hostBlocks / setting.distinctBlocks,
                setting.diskBlocks,
                (double) setting.diskBlocks / setting.distinctBlocks,
                found.totals.blockHitRatio(),
                found.totals.tokenHitRatio(),
                accesses == 0 ? 0 : (double) found.hostHits / accesses,
                found.gapClosed,
                engine.prefillSecondsSaved(),
                engine.loadSeconds(),
                engine.prefillSecondsSaved() - engine.loadSeconds(),
                engine.p50Seconds(),
                engine.p99Seconds(),
                found.hostOccupancy,
                found.diskOccupancy,
                engine.hostBytesRead(),
                engine.diskBytesRead(),
                written.bytes,
                written.blocks,
                written.ofPut,
                written.bytesOfPut,
                check.wrongBlocks,
                check.seconds);
    }

    /// The check of the bytes, and the duration.
    record Check(long wrongBlocks, double seconds) {}
}
