package io.kvcache.bench.demo;

import io.kvcache.bench.crash.CrashReplay;
import io.kvcache.bench.replay.HitTotals;
import io.kvcache.bench.store.StoreReplay.StoreReplayResult;
import io.kvcache.bench.trace.Trace;
import java.util.List;

/// What the demo found.
///
/// @param traceTitle where the requests come from, for people
/// @param blockBytes real bytes of a block in the store
/// @param bestPolicy the online policy other than LRU that did best over all capacities
/// @param rows one for each capacity
/// @param ceiling hits of an unlimited cache
/// @param realBlocks capacity of the run with real bytes
/// @param real that run
/// @param doubled hits of LRU at twice that capacity
/// @param survival of a process with a disk tier that was killed
/// @param copyGigabytesPerSecond memory copy of the same block size in this run
public record DemoResult(
        String traceTitle,
        Trace.Totals totals,
        int blockBytes,
        String bestPolicy,
        List<Row> rows,
        HitTotals ceiling,
        int realBlocks,
        StoreReplayResult real,
        HitTotals doubled,
        CrashReplay survival,
        double copyGigabytesPerSecond) {

    /// Copies the rows.
    public DemoResult {
        rows = List.copyOf(rows);
    }

    /// One capacity.
    public record Row(int blocks, HitTotals lru, HitTotals best, HitTotals belady) {}

    /// Whether no byte was wrong and no promise was broken.
    public boolean passed() {
        return real.check().passed() && survival.passed();
    }

    /// Percentage points that doubling the memory would add to the tokens reused.
    public double doublingGainPoints() {
        return 100 * (doubled.tokenHitRatio() - real.totals().tokenHitRatio());
    }
}
