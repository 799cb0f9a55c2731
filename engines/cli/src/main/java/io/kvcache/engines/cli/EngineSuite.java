package io.kvcache.engines.cli;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.EngineModel;
import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/// Measures what a store saves an inference engine in this JVM: Jlama, and llama.cpp if its library is present.
///
/// It asks a Llama of random weights the same prompts with a store and without, in turns. A prompt has 1,000
/// tokens of an earlier prompt and 48 new ones. Blocks have 16 tokens, so 992 of the 1,048 come from the store. If
/// any answers differ, the suite reports no figures.
final class EngineSuite {

    /// A pair takes seconds, and its figures vary by a tenth.
    private static final int PAIRS = 9;

    private static final int QUICK_PAIRS = 3;
    private static final double MILLIS = 1e6;
    private static final int SHARED_TOKENS = 1000;
    private static final int NEW_TOKENS = 48;
    private static final int ANSWER_TOKENS = 8;
    private static final int BLOCK_TOKENS = 16;
    private static final int FIRST_TOKEN = 3;
    private static final int WARM_UPS = 2;
    private static final long HOST_BYTES = 512L << 20;
    private static final Duration STORE_TIMEOUT = Duration.ofSeconds(60);

    private EngineSuite() {}

    static Suite suite() {
        List<String> names = engines().stream()
                .flatMap(
                        engine -> Stream.of("-first-token", "-import", "-cold").map(figure -> engine.option() + figure))
                .toList();
        return new Suite(
                "engines",
                "an inference engine with a store before its prefill",
                names,
                List.of(),
                EngineSuite::measure);
    }

    private static List<EngineKind> engines() {
        return EngineKind.LLAMACPP.isAvailable()
                ? List.of(EngineKind.JLAMA, EngineKind.LLAMACPP)
                : List.of(EngineKind.JLAMA);
    }

    private static List<Figure> measure(Suite.Run run) throws IOException, InterruptedException {
        List<Figure> figures = new ArrayList<>();
        for (EngineKind engine : engines()) {
            if (suite().figures().stream().anyMatch(name -> name.startsWith(engine.option()) && run.wants(name))) {
                run.progress().accept(engine.title());
                try (TextEngine opened = engine.openRandom()) {
                    figures.addAll(figures(engine, measure(opened.model(), run.quick() ? QUICK_PAIRS : PAIRS)));
                }
            }
        }
        return figures.stream().filter(figure -> run.wants(figure.name())).toList();
    }

    private static List<Figure> figures(EngineKind engine, List<Pair> pairs) {
        return List.of(
                Figure.of(
                        engine.option() + "-first-token",
                        "ms",
                        pairs,
                        pair -> pair.hit().timings().firstTokenNanos() / MILLIS,
                        engine.title() + " alone",
                        pair -> pair.plain().timings().firstTokenNanos() / MILLIS),
                Figure.of(
                        engine.option() + "-import",
                        "ms",
                        pairs,
                        pair -> pair.importNanos() / MILLIS,
                        "prefill replaced",
                        pair -> pair.replacedNanos() / MILLIS),
                Figure.of(
                        engine.option() + "-cold",
                        "ms",
                        pairs,
                        pair -> pair.coldNanos() / MILLIS,
                        "its prefill",
                        pair -> pair.cold().timings().prefillNanos() / MILLIS));
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
