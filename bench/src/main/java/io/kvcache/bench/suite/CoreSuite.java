package io.kvcache.bench.suite;

import io.kvcache.bench.jmh.AcquireBenchmark;
import io.kvcache.bench.jmh.EvictBenchmark;
import io.kvcache.bench.jmh.GetBenchmark;
import io.kvcache.bench.jmh.HashBenchmark;
import io.kvcache.bench.jmh.LineReadBenchmark;
import io.kvcache.bench.jmh.MatchBenchmark;
import io.kvcache.bench.jmh.MetadataFootprint;
import io.kvcache.bench.jmh.PutBenchmark;
import io.kvcache.bench.jmh.WalkBenchmark;
import java.util.List;
import java.util.stream.Stream;

/// What the embedded store costs: look-ups, hashing, copies and eviction, with a million records.
final class CoreSuite {

    private static final Fork MATCH = Fork.of("MatchBenchmark.whole");
    private static final Fork MATCH_BY_TWO = new Fork("MatchBenchmark.whole", 2);

    private static final Measure LINE =
            Measure.nanosPer("random line read", LineReadBenchmark.BATCH, Fork.of("LineReadBenchmark.read"));
    private static final Measure WHOLE = Measure.nanosPer("match", MatchBenchmark.BATCH, MATCH);
    private static final Measure SHA =
            Measure.nanosPer("SHA-256 of the tokens", HashBenchmark.TOKENS, Fork.of("HashBenchmark.sha256"));

    private static final Measure LINES = new Measure.Counted("its two lines", () -> MetadataFootprint.LINES_BYTES);

    /// Memory decides what a walk costs: two lines a block, of which look-ups ahead fetch some side by side. Recorded
    /// runs have 0.64 to 0.85 on machines with 111 to 167 ns a line.
    private static final double WALK_BY_LINE = 0.9;

    private CoreSuite() {}

    static Suite suite() {
        List<Question> all = Stream.of(matching(), records(), hashing(), moving())
                .flatMap(List::stream)
                .toList();
        return new Suite("core", "the embedded store with a million records", all);
    }

    private static List<Question> matching() {
        return List.of(
                new Question(
                        "match-whole",
                        "How long does a match take when all 8,192 blocks are here?",
                        "ns",
                        WHOLE,
                        LINE,
                        new Budget.AtMost(5000)),
                new Question(
                        "match-part",
                        "And when the chain ends anywhere, so that it takes the whole binary search?",
                        "ns",
                        Measure.nanosPer("match", MatchBenchmark.BATCH, Fork.of("PartialMatchBenchmark.match")),
                        LINE,
                        new Budget.AtMost(5000)),
                new Question(
                        "match-miss",
                        "And when not even the first block is here?",
                        "ns",
                        Measure.nanosPer("match", MatchBenchmark.BATCH, Fork.of("MatchBenchmark.miss")),
                        LINE,
                        new Budget.AtMost(300)),
                new Question(
                        "match-allocation",
                        "How many bytes does a match allocate for each of 8,192 blocks?",
                        "B/block",
                        Measure.allocationPer("match", (long) MatchBenchmark.BATCH * WalkBenchmark.BLOCKS, MATCH),
                        Measure.allocationPer("line read", LineReadBenchmark.BATCH, Fork.of("LineReadBenchmark.read")),
                        new Budget.AtMost(0.01)),
                new Question(
                        "match-two-threads",
                        "How much more do two threads match than one?",
                        "matches/us",
                        Measure.rate("two threads", MatchBenchmark.BATCH, MATCH_BY_TWO),
                        Measure.rate("one thread", MatchBenchmark.BATCH, MATCH),
                        new Budget.RatioAtLeast(1.7)));
    }

    private static List<Question> records() {
        return List.of(
                new Question(
                        "walk",
                        "What would a match cost a block if it looked up each in order?",
                        "ns/block",
                        Measure.nanosPer("find", WalkBenchmark.BLOCKS, Fork.of("WalkBenchmark.walk")),
                        LINE,
                        new Budget.RatioAtMost(WALK_BY_LINE)),
                new Question(
                        "acquire",
                        "What does it cost to take and give back a resident chain's table?",
                        "ns",
                        Measure.nanosPer(
                                "acquire and close", AcquireBenchmark.BATCH, Fork.of("AcquireBenchmark.acquire")),
                        WHOLE,
                        new Budget.AtMost(500)),
                new Question(
                        "bytes-chains",
                        "How much metadata has a record, all in, in long chains?",
                        "B",
                        new Measure.Counted("record", MetadataFootprint::chainBytes),
                        LINES,
                        new Budget.AtMost(128)),
                new Question(
                        "bytes-leaves",
                        "And when every chain is a single block?",
                        "B",
                        new Measure.Counted("record", MetadataFootprint::leafBytes),
                        LINES,
                        new Budget.AtMost(128)));
    }

    private static List<Question> hashing() {
        return List.of(
                new Question(
                        "hash-16",
                        "What does hashing a prompt cost in blocks of 16 tokens?",
                        "ns/token",
                        Measure.nanosPer("chain", HashBenchmark.TOKENS, Fork.of("HashBenchmark.blocksOf16")),
                        SHA,
                        new Budget.AtMost(8)),
                new Question(
                        "hash-256",
                        "And in blocks of 256?",
                        "ns/token",
                        Measure.nanosPer("chain", HashBenchmark.TOKENS, Fork.of("HashBenchmark.blocksOf256")),
                        SHA,
                        new Budget.AtMost(3)));
    }

    private static List<Question> moving() {
        return List.of(
                new Question(
                        "get",
                        "How much of a copy's speed has a block of 2 MiB on its way out?",
                        "GB/s",
                        Measure.speed("acquire, copy, close", GetBenchmark.BYTES, Fork.of("GetBenchmark.get")),
                        Measure.speed("copy alone", GetBenchmark.BYTES, Fork.of("GetBenchmark.copy")),
                        new Budget.RatioAtLeast(0.90)),
                new Question(
                        "put",
                        "And on its way into a full store, with checksum and eviction?",
                        "GB/s",
                        Measure.speed("put, copy, seal", PutBenchmark.BYTES, Fork.of("PutBenchmark.put")),
                        Measure.speed("copy alone", PutBenchmark.BYTES, Fork.of("PutBenchmark.copy")),
                        new Budget.RatioAtLeast(0.76)),
                new Question(
                        "evict",
                        "What does a put cost in a full store, metadata only?",
                        "ns",
                        Measure.nanosPer("reserve, evict, seal", EvictBenchmark.BATCH, Fork.of("EvictBenchmark.put")),
                        LINE,
                        new Budget.AtMost(1000)));
    }
}
