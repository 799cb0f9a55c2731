package io.kvcache.bench.suite;

import io.kvcache.bench.jmh.AcquireBenchmark;
import io.kvcache.bench.jmh.EvictBenchmark;
import io.kvcache.bench.jmh.GetBenchmark;
import io.kvcache.bench.jmh.HashBenchmark;
import io.kvcache.bench.jmh.LineReadBenchmark;
import io.kvcache.bench.jmh.MatchBenchmark;
import io.kvcache.bench.jmh.MetadataFootprint;
import io.kvcache.bench.jmh.PutBenchmark;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.JmhRunner.JmhRun;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// The cost of the embedded store: look-ups, hashing, copies and eviction, with a million records.
final class CoreSuite {

    private static final JmhRun MATCH = JmhRun.of("MatchBenchmark.whole");
    private static final JmhRun MATCH_TWO_THREADS = new JmhRun("MatchBenchmark.whole", 2);

    private static final MetricSource LINE =
            MetricSource.nanosPer("random line read", LineReadBenchmark.BATCH, JmhRun.of("LineReadBenchmark.read"));
    private static final MetricSource FULL_MATCH = MetricSource.nanosPer("match", MatchBenchmark.BATCH, MATCH);
    private static final MetricSource SHA =
            MetricSource.nanosPer("SHA-256 of the tokens", HashBenchmark.TOKENS, JmhRun.of("HashBenchmark.sha256"));

    private static final MetricSource TWO_LINES =
            new MetricSource.ConstantMetric("its two lines", () -> MetadataFootprint.LINES_BYTES);

    private CoreSuite() {}

    static BenchmarkSuite suite() {
        List<BenchmarkSpec> all = Stream.of(matching(), records(), hashing(), moving())
                .flatMap(List::stream)
                .toList();
        return new BenchmarkSuite("core", "the embedded store with a million records", all);
    }

    private static List<BenchmarkSpec> matching() {
        return List.of(
                new BenchmarkSpec(
                        "match-whole",
                        "How long does a match take when all 8,192 blocks are here?",
                        "ns",
                        FULL_MATCH,
                        LINE,
                        new Threshold.AtMost(5000)),
                new BenchmarkSpec(
                        "match-part",
                        "And when the chain ends anywhere, so that it takes the whole binary search?",
                        "ns",
                        MetricSource.nanosPer("match", MatchBenchmark.BATCH, JmhRun.of("PartialMatchBenchmark.match")),
                        LINE,
                        new Threshold.AtMost(5000)),
                new BenchmarkSpec(
                        "match-miss",
                        "And when not even the first block is here?",
                        "ns",
                        MetricSource.nanosPer("match", MatchBenchmark.BATCH, JmhRun.of("MatchBenchmark.miss")),
                        LINE,
                        new Threshold.AtMost(300)),
                new BenchmarkSpec(
                        "match-allocation",
                        "How many bytes does a match allocate for each of 8,192 blocks?",
                        "B/block",
                        MetricSource.allocationPer("match", (long) MatchBenchmark.BATCH * MatchBenchmark.BLOCKS, MATCH),
                        MetricSource.allocationPer(
                                "line read", LineReadBenchmark.BATCH, JmhRun.of("LineReadBenchmark.read")),
                        new Threshold.AtMost(0.01)),
                new BenchmarkSpec(
                        "match-two-threads",
                        "How much more do two threads match than one?",
                        "matches/us",
                        MetricSource.throughput("two threads", MatchBenchmark.BATCH, MATCH_TWO_THREADS),
                        MetricSource.throughput("one thread", MatchBenchmark.BATCH, MATCH),
                        new Threshold.RatioAtLeast(1.7)));
    }

    private static List<BenchmarkSpec> records() {
        return List.of(
                new BenchmarkSpec(
                        "acquire",
                        "What does it cost to take and give back a resident chain's table?",
                        "ns",
                        MetricSource.nanosPer(
                                "acquire and close", AcquireBenchmark.BATCH, JmhRun.of("AcquireBenchmark.acquire")),
                        FULL_MATCH,
                        new Threshold.AtMost(500)),
                new BenchmarkSpec(
                        "bytes-chains",
                        "How much metadata has a record, all in, in long chains?",
                        "B",
                        new MetricSource.ConstantMetric("record", MetadataFootprint::chainBytes),
                        TWO_LINES,
                        new Threshold.AtMost(120)),
                new BenchmarkSpec(
                        "bytes-leaves",
                        "And when every chain is a single block?",
                        "B",
                        new MetricSource.ConstantMetric("record", MetadataFootprint::leafBytes),
                        TWO_LINES,
                        new Threshold.AtMost(120)));
    }

    private static List<BenchmarkSpec> hashing() {
        return List.of(
                new BenchmarkSpec(
                        "hash-16",
                        "What does hashing a prompt cost in blocks of 16 tokens?",
                        "ns/token",
                        MetricSource.nanosPer("chain", HashBenchmark.TOKENS, JmhRun.of("HashBenchmark.blocksOf16")),
                        SHA,
                        new Threshold.AtMost(8)),
                new BenchmarkSpec(
                        "hash-256",
                        "And in blocks of 256?",
                        "ns/token",
                        MetricSource.nanosPer("chain", HashBenchmark.TOKENS, JmhRun.of("HashBenchmark.blocksOf256")),
                        SHA,
                        new Threshold.AtMost(3)),
                new BenchmarkSpec(
                        "prompt-whole",
                        "How much longer than SHA-256 takes hashing 131,328 tokens in blocks of 256?",
                        "ns",
                        prompt("whole", 256),
                        prompt("sha256", 256),
                        new Threshold.RatioAtMost(1.3)),
                again(16),
                again(256),
                new BenchmarkSpec(
                        "prompt-table",
                        "From those tokens to the table of the known blocks?",
                        "ns",
                        prompt("table", 256),
                        prompt("compare", 256),
                        new Threshold.RatioAtMost(2.5)),
                new BenchmarkSpec(
                        "prompt-table-message",
                        "And at a server on this host, by message?",
                        "ns",
                        MetricSource.nanosPer("tableByMessage", 1, JmhRun.of("PromptBenchmark.tableByMessage")),
                        prompt("compare", 256),
                        new Threshold.AtMost(80_000)));
    }

    private static BenchmarkSpec again(int blockTokens) {
        return new BenchmarkSpec(
                "prompt-again-" + blockTokens,
                "What does it cost to hash 256 new tokens behind 131,072 known ones, in blocks of %s?"
                        .formatted(blockTokens),
                "ns",
                prompt("again", blockTokens),
                prompt("compare", blockTokens),
                new Threshold.RatioAtMost(2));
    }

    private static MetricSource prompt(String benchmark, int blockTokens) {
        JmhRun run = new JmhRun("PromptBenchmark." + benchmark, 1, Map.of("blockTokens", String.valueOf(blockTokens)));
        return MetricSource.nanosPer(benchmark, 1, run);
    }

    private static List<BenchmarkSpec> moving() {
        return List.of(
                new BenchmarkSpec(
                        "get",
                        "How much of a copy's speed has a block of 2 MiB on its way out?",
                        "GB/s",
                        MetricSource.bandwidth(
                                "acquire, copy, close", GetBenchmark.BYTES, JmhRun.of("GetBenchmark.get")),
                        MetricSource.bandwidth("copy alone", GetBenchmark.BYTES, JmhRun.of("GetBenchmark.copy")),
                        new Threshold.RatioAtLeast(0.90)),
                new BenchmarkSpec(
                        "put",
                        "And on its way into a full store, with checksum and eviction?",
                        "GB/s",
                        MetricSource.bandwidth("put, copy, seal", PutBenchmark.BYTES, JmhRun.of("PutBenchmark.put")),
                        MetricSource.bandwidth("copy alone", PutBenchmark.BYTES, JmhRun.of("PutBenchmark.copy")),
                        new Threshold.RatioAtLeast(0.76)),
                new BenchmarkSpec(
                        "evict",
                        "What does a put cost in a full store, metadata only?",
                        "ns",
                        MetricSource.nanosPer(
                                "reserve, evict, seal", EvictBenchmark.BATCH, JmhRun.of("EvictBenchmark.put")),
                        LINE,
                        new Threshold.AtMost(1000)));
    }
}
