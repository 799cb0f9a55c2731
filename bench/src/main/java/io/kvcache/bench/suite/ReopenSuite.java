package io.kvcache.bench.suite;

import io.kvcache.bench.disk.TierOpenTiming;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/// The cost of a restart: opens a full disk tier of 1 TiB, by the log alone, and by a store with its tree of
/// records.
///
/// The tier is sparse: its trailers are real and its blocks are holes, so it takes 1.1 GB in the temporary
/// directory while this runs.
final class ReopenSuite {

    private static final long TIER_BYTES = 1L << 40;
    private static final long GIGABYTE = 1L << 30;
    private static final int SMALL = 64 << 10;
    private static final int LARGE = 2 << 20;
    private static final Path FOLDER = Path.of(System.getProperty("java.io.tmpdir"));

    /// Each is measured once, by the first question that asks.
    private static final Map<Integer, TierOpenTiming> OPEN_TIMINGS = new HashMap<>();

    private static final Map<TierSize, TierOpenTiming> INDEX_TIMINGS = new HashMap<>();

    private ReopenSuite() {}

    static BenchmarkSuite suite() {
        return new BenchmarkSuite(
                "reopen",
                "a full disk tier of 1 TiB after a restart",
                List.of(
                        new BenchmarkSpec(
                                "reopen-64k-serving",
                                "How long until it serves, with 16.7 million blocks of 64 KiB?",
                                "s",
                                seconds("log", SMALL, TierOpenTiming::servingSeconds),
                                reading(SMALL),
                                new Threshold.AtMost(1)),
                        new BenchmarkSpec(
                                "reopen-64k-full",
                                "And until all of them are told?",
                                "s",
                                seconds("log", SMALL, TierOpenTiming::fullSeconds),
                                reading(SMALL),
                                new Threshold.AtMost(4)),
                        new BenchmarkSpec(
                                "reopen-64k-entry",
                                "What is that for each block?",
                                "ns",
                                seconds("log", SMALL, TierOpenTiming::nanosPerEntry),
                                seconds("read", SMALL, found -> 1e9 * found.readingSeconds() / found.entries()),
                                new Threshold.AtMost(240)),
                        new BenchmarkSpec(
                                "reopen-2m-full",
                                "And until all blocks are told when they are of 2 MiB?",
                                "s",
                                seconds("log", LARGE, TierOpenTiming::fullSeconds),
                                reading(LARGE),
                                new Threshold.AtMost(1)),
                        new BenchmarkSpec(
                                "tree-64k-serving",
                                "How long until a store serves, which puts all of them into its tree?",
                                "s",
                                tree(TIER_BYTES, SMALL, TierOpenTiming::servingSeconds),
                                reading(SMALL),
                                new Threshold.AtMost(1)),
                        new BenchmarkSpec(
                                "tree-64k-full",
                                "And until all blocks of 64 KiB are in the tree?",
                                "s",
                                tree(TIER_BYTES, SMALL, TierOpenTiming::fullSeconds),
                                reading(SMALL),
                                new Threshold.AtMost(15)),
                        new BenchmarkSpec(
                                "tree-64k-entry",
                                "What is that for each block, beside a tier of 1 GiB?",
                                "ns",
                                tree(TIER_BYTES, SMALL, TierOpenTiming::nanosPerEntry),
                                tree(GIGABYTE, SMALL, TierOpenTiming::nanosPerEntry),
                                new Threshold.RatioAtMost(1.5)),
                        new BenchmarkSpec(
                                "tree-2m-full",
                                "And until all blocks of 2 MiB are in the tree?",
                                "s",
                                tree(TIER_BYTES, LARGE, TierOpenTiming::fullSeconds),
                                reading(LARGE),
                                new Threshold.AtMost(1))));
    }

    private static MetricSource tree(long tierBytes, int blockBytes, ToDoubleFunction<TierOpenTiming> reading) {
        return new MetricSource.ConstantMetric(
                "tree",
                () -> reading.applyAsDouble(INDEX_TIMINGS.computeIfAbsent(
                        new TierSize(tierBytes, blockBytes), tierSize -> {
                            try {
                                return TierOpenTiming.measureTree(FOLDER, tierSize.tierBytes, tierSize.blockBytes);
                            } catch (IOException failure) {
                                throw new UncheckedIOException(failure);
                            }
                        })));
    }

    private record TierSize(long tierBytes, int blockBytes) {}

    private static MetricSource reading(int blockBytes) {
        return seconds("read the trailers", blockBytes, TierOpenTiming::readingSeconds);
    }

    private static MetricSource seconds(String name, int blockBytes, ToDoubleFunction<TierOpenTiming> reading) {
        return new MetricSource.ConstantMetric(name, () -> reading.applyAsDouble(measured(blockBytes)));
    }

    private static TierOpenTiming measured(int blockBytes) {
        return OPEN_TIMINGS.computeIfAbsent(blockBytes, _ -> {
            try {
                return TierOpenTiming.measure(FOLDER, TIER_BYTES, blockBytes);
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        });
    }
}
