package io.kvcache.bench.suite;

import io.kvcache.bench.disk.LayerRounds;
import io.kvcache.bench.disk.LayerRounds.Round;
import io.kvcache.bench.disk.LayerRounds.Scale;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import java.util.List;
import java.util.stream.Stream;

/// When the first layers of a chain are there that comes from a disk layer by layer, and what the steps cost.
final class LayerSuite {

    private static final int BLOCKS = 64;
    private static final long SLOW = 300_000_000;
    private static final long FAST = 3_000_000_000L;

    private static final Threshold FIRST = new Threshold.RatioAtMost(0.10);
    private static final Threshold WHOLE = new Threshold.RatioAtMost(1.05);

    private LayerSuite() {}

    static BenchmarkSuite suite() {
        List<BenchmarkSpec> questions = Stream.of(
                        questions("plain", "plain on a disk of 300 MB/s", new Scale(BLOCKS, false, SLOW), 1),
                        questions("coded", "coded on that disk", new Scale(BLOCKS, true, SLOW), 1),
                        questions("plain-fast", "plain on a disk of 3 GB/s", new Scale(BLOCKS, false, FAST), 5),
                        questions("coded-fast", "coded on that disk", new Scale(BLOCKS, true, FAST), 5))
                .flatMap(List::stream)
                .toList();
        return new BenchmarkSuite("layers", "blocks from disk layer by layer", questions);
    }

    private static List<BenchmarkSpec> questions(String name, String words, Scale scale, int perRound) {
        SharedRounds<Round> rounds = new SharedRounds<>(count -> LayerRounds.measure(scale, count), perRound);
        MetricSource whole = rounds.metric("all, by blocks, " + name, Round::whole);
        return List.of(
                new BenchmarkSpec(
                        "first-" + name,
                        "How soon have all of 64 blocks of 2 MiB their first 2 of 32 layers, " + words + "?",
                        "ms",
                        rounds.metric("2 layers, " + name, Round::firstStep),
                        whole,
                        FIRST),
                new BenchmarkSpec(
                        "whole-" + name,
                        "And all of their layers, beside whole blocks in order?",
                        "ms",
                        rounds.metric("all, by layers, " + name, Round::lastStep),
                        whole,
                        WHOLE));
    }
}
