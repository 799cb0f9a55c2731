package io.kvcache.engines.cli;

import io.kvcache.bench.suite.BenchmarkSpec;
import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.bench.suite.MetricSource;
import io.kvcache.bench.suite.RunLength;
import io.kvcache.bench.suite.Threshold;
import io.kvcache.engines.cli.EnginePairBenchmark.Pair;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/// What a store is worth to an inference engine in this JVM: [EnginePairBenchmark] with Jlama, and with llama.cpp
/// where its library is.
final class EngineSuite {

    /// One effort takes this many times its rounds of pairs: a pair is of seconds, and its figures vary
    /// by a tenth.
    private static final int PAIRS_PER_ROUND = 3;

    private static final double MILLIS = 1e6;

    /// Measured once, by the first question that asks.
    private static final Map<MeasurementKey, List<Pair>> MEASURED = new HashMap<>();

    private record MeasurementKey(EngineKind engine, RunLength runLength) {}

    private EngineSuite() {}

    static BenchmarkSuite suite() {
        List<BenchmarkSpec> questions = new ArrayList<>(benchmarks(EngineKind.JLAMA, 1.0 / 12));
        if (EngineKind.LLAMACPP.isAvailable()) {
            questions.addAll(benchmarks(EngineKind.LLAMACPP, 1.0 / 3));
        }
        return new BenchmarkSuite("engines", "an inference engine with a store before its prefill", questions);
    }

    /// @param firstToken most that the first token may take with the store, as a share of what it takes without
    private static List<BenchmarkSpec> benchmarks(EngineKind engine, double firstToken) {
        return List.of(
                new BenchmarkSpec(
                        engine.option() + "-first-token",
                        "How long until the first token, with 992 of 1,048 tokens from the store?",
                        "ms",
                        millis(
                                engine,
                                "with the store",
                                pair -> pair.hit().timings().firstTokenNanos()),
                        millis(
                                engine,
                                engine.title() + " alone",
                                pair -> pair.plain().timings().firstTokenNanos()),
                        new Threshold.RatioAtMost(firstToken)),
                new BenchmarkSpec(
                        engine.option() + "-import",
                        "How long do look-up and copying take, beside the prefill that they replace?",
                        "ms",
                        millis(engine, "look-up and copy", Pair::importNanos),
                        millis(engine, "prefill replaced", Pair::replacedNanos),
                        new Threshold.RatioAtMost(0.03)),
                new BenchmarkSpec(
                        engine.option() + "-cold",
                        "What does a prompt of 1,000 tokens cost that is not there, on any thread?",
                        "ms",
                        millis(engine, "look-up and store", Pair::coldNanos),
                        millis(
                                engine,
                                "its prefill",
                                pair -> pair.cold().timings().prefillNanos()),
                        new Threshold.RatioAtMost(0.03)));
    }

    private static MetricSource millis(EngineKind engine, String name, ToDoubleFunction<Pair> nanos) {
        return new MetricSource.RoundsMetric(
                name,
                runLength -> pairs(new MeasurementKey(engine, runLength)).stream()
                        .mapToDouble(pair -> nanos.applyAsDouble(pair) / MILLIS)
                        .toArray());
    }

    private static List<Pair> pairs(MeasurementKey measurementKey) {
        return MEASURED.computeIfAbsent(measurementKey, _ -> {
            try (TextEngine engine = measurementKey.engine().openRandom()) {
                return EnginePairBenchmark.measure(
                        engine.model(), measurementKey.runLength().rounds() * PAIRS_PER_ROUND);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while engines were measured", stopped);
            }
        });
    }
}
