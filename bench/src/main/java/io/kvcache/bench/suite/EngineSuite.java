package io.kvcache.bench.suite;

import io.kvcache.bench.engine.EnginePairs;
import io.kvcache.bench.engine.EnginePairs.Pair;
import io.kvcache.engines.jlama.RandomLlama;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/// What a store is worth to an inference engine in this JVM: [EnginePairs] with Jlama.
final class EngineSuite {

    /// One effort takes this many times its rounds of pairs: a pair is of seconds, and its figures vary
    /// by a tenth.
    private static final int PAIRS_A_ROUND = 3;

    private static final double MILLIS = 1e6;

    /// Measured once, by the first question that asks.
    private static final Map<Effort, List<Pair>> MEASURED = new HashMap<>();

    private EngineSuite() {}

    static Suite suite() {
        Measure plain = millis("Jlama alone", pair -> pair.plain().time().firstTokenNanos());
        return new Suite(
                "engines",
                "an inference engine with a store before its prefill",
                List.of(
                        new Question(
                                "jlama-first-token",
                                "How long until the first token, with 992 of 1,048 tokens from the store?",
                                "ms",
                                millis(
                                        "with the store",
                                        pair -> pair.hit().time().firstTokenNanos()),
                                plain,
                                new Budget.RatioAtMost(1.0 / 12)),
                        new Question(
                                "jlama-import",
                                "How long do look-up and copying take, beside the prefill that they replace?",
                                "ms",
                                millis("look-up and copy", Pair::importNanos),
                                millis("prefill replaced", Pair::replacedNanos),
                                new Budget.RatioAtMost(0.03)),
                        new Question(
                                "jlama-cold",
                                "What does a prompt of 1,000 tokens cost that is not there, on any thread?",
                                "ms",
                                millis("look-up and store", Pair::coldNanos),
                                millis("its prefill", pair -> pair.cold().time().prefillNanos()),
                                new Budget.RatioAtMost(0.03))));
    }

    private static Measure millis(String name, ToDoubleFunction<Pair> nanos) {
        return new Measure.Rounds(
                name,
                effort -> pairs(effort).stream()
                        .mapToDouble(pair -> nanos.applyAsDouble(pair) / MILLIS)
                        .toArray());
    }

    private static List<Pair> pairs(Effort effort) {
        return MEASURED.computeIfAbsent(effort, _ -> {
            try {
                return EnginePairs.measure(RandomLlama.MEDIUM, effort.rounds() * PAIRS_A_ROUND);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while engines were measured", stopped);
            }
        });
    }
}
