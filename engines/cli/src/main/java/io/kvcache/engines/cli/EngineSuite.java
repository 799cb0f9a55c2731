package io.kvcache.engines.cli;

import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.MetricSource;
import io.kvcache.bench.suite.SuiteRunner.RunLength;
import io.kvcache.bench.suite.Threshold;
import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.EngineModel;
import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.ToDoubleFunction;

/// Measures what a store saves an inference engine in this JVM: Jlama, and llama.cpp if its library is present.
///
/// It asks a Llama of random weights the same prompts with a store and without, in turns. A prompt has 1,000 tokens
/// of an earlier prompt and 48 new ones. Blocks have 16 tokens, so 992 of the 1,048 come from the store. If any
/// answers differ, the suite reports no figures.
final class EngineSuite {

    /// One effort takes this many times its rounds of pairs: a pair is of seconds, and its figures vary
    /// by a tenth.
    private static final int PAIRS_PER_ROUND = 3;

    private static final double MILLIS = 1e6;
    private static final int SHARED_TOKENS = 1000;
    private static final int NEW_TOKENS = 48;
    private static final int ANSWER_TOKENS = 8;
    private static final int BLOCK_TOKENS = 16;
    private static final int FIRST_TOKEN = 3;
    private static final int WARM_UPS = 2;
    private static final long HOST_BYTES = 512L << 20;
    private static final Duration STORE_TIMEOUT = Duration.ofSeconds(60);

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
                return measure(engine.model(), measurementKey.runLength().rounds() * PAIRS_PER_ROUND);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while engines were measured", stopped);
            }
        });
    }

    /// One round.
    ///
    /// @param cold 1,000 new tokens, with a store; nothing of it is found, all of it
    ///     is stored
    /// @param coldStoreNanos the time of the thread that stored it
    /// @param hit the 1,048 tokens with the store
    /// @param plain the same without
    public record Pair(Generation cold, long coldStoreNanos, Generation hit, Generation plain) {

        /// Returns the computing time of the tokens that came from the store, by their share of the prompt.
        public double replacedNanos() {
            return (double) plain.timings().prefillNanos() * hit.cachedTokens() / hit.promptTokens();
        }

        /// Looking up and copying in.
        public long importNanos() {
            return hit.timings().lookupNanos() + hit.timings().importNanos();
        }

        /// Returns the extra time of a store for a prompt that was not in it, on all threads.
        public long coldNanos() {
            return cold.timings().lookupNanos() + cold.timings().importNanos() + coldStoreNanos;
        }
    }

    /// Measures the given number of rounds, after some that do not count.
    ///
    /// @param model of random weights, with a context of at least 1,060 tokens; stays the caller's
    /// @throws IllegalStateException when an answer with the store is another one than without
    public static List<Pair> measure(EngineModel model, int rounds) throws InterruptedException {
        try (KvCache cache = TieredKvCache.builder()
                        .hostBytes(HOST_BYTES)
                        .prefaultAtStart(true)
                        .build();
                PrefixCachedGenerator<?> generator = new PrefixCachedGenerator<>(
                        model, cache, GeneratorOptions.DEFAULTS.withBlockTokens(BLOCK_TOKENS))) {
            List<Pair> pairs = new ArrayList<>();
            for (int round = -WARM_UPS; round < rounds; round++) {
                Pair pair = measurePair(generator, model.vocabulary(), round);
                if (round >= 0) {
                    pairs.add(pair);
                }
            }
            return pairs;
        }
    }

    private static Pair measurePair(PrefixCachedGenerator<?> generator, int vocabulary, int round)
            throws InterruptedException {
        SplittableRandom random = new SplittableRandom(round);
        int[] prefix = tokens(random, vocabulary, SHARED_TOKENS);
        int[] prompt = Arrays.copyOf(prefix, SHARED_TOKENS + NEW_TOKENS);
        System.arraycopy(tokens(random, vocabulary, NEW_TOKENS), 0, prompt, SHARED_TOKENS, NEW_TOKENS);

        long before = generator.stats().nanos().store();
        Generation cold = ask(generator, GenerationRequest.greedy(prefix, 1));
        long storing = generator.stats().nanos().store() - before;
        // The second finds the processor as the first one left it; so they take turns.
        boolean hitFirst = round % 2 == 0;
        GenerationRequest request = GenerationRequest.greedy(prompt, ANSWER_TOKENS);
        Generation one = ask(generator, hitFirst ? request : request.uncached());
        Generation two = ask(generator, hitFirst ? request.uncached() : request);
        Generation hit = hitFirst ? one : two;
        Generation plain = hitFirst ? two : one;
        if (!Arrays.equals(hit.tokens(), plain.tokens())) {
            throw new IllegalStateException("the answer with the store is another one in round " + round);
        }
        if (hit.cachedTokens() != SHARED_TOKENS / BLOCK_TOKENS * BLOCK_TOKENS || cold.cachedTokens() != 0) {
            throw new IllegalStateException("%s tokens came from the store in round %s, and %s of a new prompt"
                    .formatted(hit.cachedTokens(), round, cold.cachedTokens()));
        }
        return new Pair(cold, storing, hit, plain);
    }

    private static Generation ask(PrefixCachedGenerator<?> generator, GenerationRequest request)
            throws InterruptedException {
        Generation made = generator.generate(request, _ -> true);
        if (!generator.awaitStored(STORE_TIMEOUT)) {
            throw new IllegalStateException("blocks were still being stored after " + STORE_TIMEOUT);
        }
        return made;
    }

    private static int[] tokens(SplittableRandom random, int vocabulary, int count) {
        return random.ints(count, FIRST_TOKEN, vocabulary).toArray();
    }
}
