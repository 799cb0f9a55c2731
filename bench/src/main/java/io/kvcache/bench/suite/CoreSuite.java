package io.kvcache.bench.suite;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import io.kvcache.bench.jmh.BlockCopyBenchmark;
import io.kvcache.bench.jmh.CacheLineBenchmark;
import io.kvcache.bench.jmh.EvictBenchmark;
import io.kvcache.bench.jmh.HashBenchmark;
import io.kvcache.bench.jmh.MatchBenchmark;
import io.kvcache.bench.jmh.ResidentStore;
import io.kvcache.bench.suite.JmhProcess.JmhRun;
import io.kvcache.bench.suite.JmhSuite.JmhFigure;
import io.kvcache.bench.suite.JmhSuite.Reading;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// The cost of the embedded store: look-ups, hashing, copies and eviction, with a million records.
public final class CoreSuite {

    private static final JmhRun MATCH = JmhRun.of("MatchBenchmark.whole");
    private static final JmhRun LINE_READ = JmhRun.of("CacheLineBenchmark.read");
    private static final Reading LINE = Reading.nanosPer("random line read", CacheLineBenchmark.BATCH, LINE_READ);
    private static final Reading FULL_MATCH = match("whole");
    private static final Reading SHA = hash("SHA-256 of the tokens", "sha256");

    private static final JmhSuite TIMED = new JmhSuite(List.of(
            new JmhFigure("match-whole", "ns", FULL_MATCH, LINE),
            new JmhFigure(
                    "match-part",
                    "ns",
                    Reading.nanosPer("match", MatchBenchmark.BATCH, JmhRun.of("MatchBenchmark.part")),
                    LINE),
            new JmhFigure("match-miss", "ns", match("miss"), LINE),
            new JmhFigure("match-hybrid", "ns", match("hybrid"), LINE),
            new JmhFigure(
                    "match-hybrid-bare",
                    "ns",
                    Reading.nanosPer("match", 1, JmhRun.of("MatchBenchmark.hybridBare")),
                    LINE),
            new JmhFigure(
                    "match-allocation",
                    "B/block",
                    Reading.allocationPer("match", (long) MatchBenchmark.BATCH * MatchBenchmark.BLOCKS, MATCH),
                    Reading.allocationPer("line read", CacheLineBenchmark.BATCH, LINE_READ)),
            new JmhFigure(
                    "match-two-threads",
                    "matches/us",
                    Reading.throughput(
                            "two threads", MatchBenchmark.BATCH, new JmhRun("MatchBenchmark.whole", 2, Map.of())),
                    Reading.throughput("one thread", MatchBenchmark.BATCH, MATCH)),
            new JmhFigure(
                    "acquire",
                    "ns",
                    Reading.nanosPer(
                            "acquire and close", MatchBenchmark.ACQUIRE_BATCH, JmhRun.of("MatchBenchmark.acquire")),
                    FULL_MATCH),
            new JmhFigure("hash-16", "ns/token", hash("chain", "blocksOf16"), SHA),
            new JmhFigure("hash-256", "ns/token", hash("chain", "blocksOf256"), SHA),
            new JmhFigure("prompt-whole", "ns", prompt("whole", 256), prompt("sha256", 256)),
            new JmhFigure("prompt-again-16", "ns", prompt("again", 16), prompt("compare", 16)),
            new JmhFigure("prompt-again-256", "ns", prompt("again", 256), prompt("compare", 256)),
            new JmhFigure("prompt-table", "ns", prompt("table", 256), prompt("compare", 256)),
            new JmhFigure(
                    "prompt-table-message",
                    "ns",
                    Reading.nanosPer("tableByMessage", 1, JmhRun.of("PromptBenchmark.tableByMessage")),
                    prompt("compare", 256)),
            new JmhFigure(
                    "get",
                    "GB/s",
                    Reading.bandwidth(
                            "acquire, copy, close", BlockCopyBenchmark.BYTES, JmhRun.of("BlockCopyBenchmark.get")),
                    Reading.bandwidth("copy alone", BlockCopyBenchmark.BYTES, JmhRun.of("BlockCopyBenchmark.copyOut"))),
            new JmhFigure(
                    "put",
                    "GB/s",
                    Reading.bandwidth("put, copy, seal", BlockCopyBenchmark.BYTES, JmhRun.of("BlockCopyBenchmark.put")),
                    Reading.bandwidth("copy alone", BlockCopyBenchmark.BYTES, JmhRun.of("BlockCopyBenchmark.copyIn"))),
            new JmhFigure(
                    "evict",
                    "ns",
                    Reading.nanosPer("reserve, evict, seal", EvictBenchmark.BATCH, JmhRun.of("EvictBenchmark.put")),
                    LINE)));

    /// Bytes of metadata, counted once.
    private static final List<String> COUNTED = List.of("bytes-chains", "bytes-leaves");

    private CoreSuite() {}

    public static Suite suite() {
        List<String> names = new ArrayList<>(TIMED.names());
        names.addAll(COUNTED);
        return new Suite("core", "the embedded store with a million records", names, List.of(), CoreSuite::measure);
    }

    private static List<Figure> measure(Suite.Run run) throws IOException {
        List<Figure> figures = new ArrayList<>(TIMED.measure(run));
        for (String name : COUNTED) {
            if (run.wants(name)) {
                run.progress().accept(name);
                double[] bytes = {name.equals("bytes-chains") ? ResidentStore.chainBytes() : ResidentStore.leafBytes()};
                double[] lines = {ResidentStore.LINES_BYTES};
                figures.add(Figure.of(name, "B", bytes, "its two lines", lines));
            }
        }
        return figures;
    }

    /// Returns the benchmarks of times and speeds by the names of their figures.
    static Map<String, JmhRun> timed() {
        Map<String, JmhRun> timed = new LinkedHashMap<>();
        TIMED.figures().stream()
                .filter(figure -> !figure.unit().startsWith("B"))
                .forEach(figure -> timed.put(figure.name(), figure.value().run()));
        return timed;
    }

    private static Reading match(String benchmark) {
        return Reading.nanosPer("match", MatchBenchmark.BATCH, JmhRun.of("MatchBenchmark." + benchmark));
    }

    private static Reading hash(String subject, String benchmark) {
        return Reading.nanosPer(subject, HashBenchmark.TOKENS, JmhRun.of("HashBenchmark." + benchmark));
    }

    private static Reading prompt(String benchmark, int blockTokens) {
        Map<String, String> parameters = Map.of("blockTokens", String.valueOf(blockTokens));
        return Reading.nanosPer(benchmark, 1, new JmhRun("PromptBenchmark." + benchmark, 1, parameters));
    }
}
