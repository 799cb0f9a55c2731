package io.kvcache.bench.cli;

import io.kvcache.bench.demo.DemoResult;
import java.util.List;

/// The demo's result as one object. The names are what programs rely on.
record DemoJson(
        String trace,
        int requests,
        long blockAccesses,
        int blockBytes,
        String bestPolicy,
        List<Row> rows,
        double ceilingBlockHitRatio,
        int realBlocks,
        long bytesServed,
        double gigabytesPerSecond,
        double copyGigabytesPerSecond,
        long lookupNanosP50,
        long lookupNanosP99,
        long blocksServed,
        long wrongBlocks,
        long leaked,
        double tokenHitRatio,
        double doublingAddsPoints,
        double reopenSeconds,
        int flushedBlocks,
        int flushedBlocksPresent,
        int flushedBlocksWrong,
        double writtenShare) {

    /// One capacity.
    record Row(int blocks, double lru, double best, double belady, double lruTokens) {}

    static DemoJson of(DemoResult result) {
        var real = result.real();
        return new DemoJson(
                result.traceTitle(),
                result.totals().requests(),
                result.totals().blockAccesses(),
                result.blockBytes(),
                result.bestPolicy(),
                result.rows().stream().map(DemoJson::row).toList(),
                result.ceiling().blockHitRatio(),
                result.realBlocks(),
                real.bytes().served(),
                real.bytes().gigabytesPerSecond(),
                result.copyGigabytesPerSecond(),
                real.lookupNanos().getValueAtPercentile(50),
                real.lookupNanos().getValueAtPercentile(99),
                real.check().blocksServed(),
                real.check().wrongBlocks(),
                real.check().leaked(),
                real.totals().tokenHitRatio(),
                result.doublingGainPoints(),
                result.survival().reopenSeconds(),
                result.survival().promisedBlocks(),
                result.survival().presentBlocks(),
                result.survival().wrongBlocks(),
                result.survival().writtenShare());
    }

    private static Row row(DemoResult.Row row) {
        return new Row(
                row.blocks(),
                row.lru().blockHitRatio(),
                row.best().blockHitRatio(),
                row.belady().blockHitRatio(),
                row.lru().tokenHitRatio());
    }
}
