package io.kvcache.bench.lab;

import io.kvcache.bench.store.TierReplay;
import io.kvcache.bench.store.TierReplayResult;

/// One policy over host memory and a disk, over one trace. The fields' names are what programs rely on.
///
/// @param hostShare of the trace's distinct blocks that fit host memory, which comes in whole slabs
/// @param diskShare of them that may be alive on disk
/// @param blockHitRatio hits in both tiers over blocks looked up
/// @param hostHitRatio of these, in host memory when the request came
/// @param prefillSecondsSaved that computing the hits would have taken
/// @param loadSeconds that moving them took
/// @param ttftP50Seconds until the first token
/// @param diskBlocksWritten blocks written to disk, once or more
/// @param writtenOfPut of the blocks that were put, which a write-through store would all write
/// @param diskBytesOfPut bytes that the disk was given for all that, with tables and what was written again to make
///     room, for each byte of blocks that were put; beside that of the row with `always`
/// @param wrongBlocks whose bytes were not those that were put
public record TierRow(
        String trace,
        String policy,
        String admission,
        int hostBlocks,
        double hostShare,
        int diskBlocks,
        double diskShare,
        double blockHitRatio,
        double hostHitRatio,
        double prefillSecondsSaved,
        double loadSeconds,
        double ttftP50Seconds,
        double ttftP99Seconds,
        long diskBlocksWritten,
        double writtenOfPut,
        double diskBytesOfPut,
        long wrongBlocks,
        double seconds) {

    /// The heads of a table of rows in [#csv].
    public static final String CSV_HEAD = Csv.head(TierRow.class);

    static TierRow of(
            TierLaboratory.Place place,
            TierReplay.Settings settings,
            TierReplayResult result,
            EngineModel.Report engine) {
        return new TierRow(
                place.trace(),
                settings.policy().commandName(),
                settings.admission().commandName(),
                settings.hostBlocks(),
                (double) settings.hostBlocks() / place.distinctBlocks(),
                settings.diskBlocks(),
                (double) settings.diskBlocks() / place.distinctBlocks(),
                result.totals().blockHitRatio(),
                result.hostHitRatio(),
                engine.prefillSecondsSaved(),
                engine.loadSeconds(),
                engine.p50Seconds(),
                engine.p99Seconds(),
                result.written().blockBytes() / settings.blockBytes(),
                1 - result.written().saved(),
                result.written().allOfPut(),
                result.check().wrongBlocks(),
                result.seconds());
    }

    /// Prefill that was saved, less the time that moving the blocks took.
    public double savedLessLoading() {
        return prefillSecondsSaved - loadSeconds;
    }

    /// A line of comma-separated values.
    public String csv() {
        return Csv.line(this);
    }
}
