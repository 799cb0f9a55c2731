package io.kvcache.bench.serving;

import io.kvcache.bench.Median;
import io.kvcache.bench.serving.CompletionServer.Completion;
import java.io.IOException;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.Consumer;

/// Measures an idle server and fits its times: prompts of several lengths, each asked while it is new, again
/// when it is cached, and with its first half cached.
public final class EngineCalibrator {

    /// Lengths of the prompts, as shares of the longest.
    private static final double[] SHARES = {1 / 32.0, 1 / 16.0, 1 / 8.0, 1 / 4.0, 1 / 2.0, 1};

    private static final int ANSWER_TOKENS = 16;
    private static final int WARM_UPS = 2;

    private final CompletionServer server;
    private final int longestPrompt;
    private final Duration pause;
    private final Consumer<String> progress;

    /// @param longestPrompt in tokens, at least 64
    /// @param pause between two requests, in which the server stores what it has computed
    /// @param progress told what is measured
    public EngineCalibrator(CompletionServer server, int longestPrompt, Duration pause, Consumer<String> progress) {
        this.server = server;
        this.longestPrompt = longestPrompt;
        this.pause = pause;
        this.progress = progress;
    }

    /// What is alike of several prompts.
    private record PromptKind(int promptTokens, int cachedTokens) {}

    /// One kind of prompt, measured.
    ///
    /// @param seconds to the first token, the median
    public record Measurement(int promptTokens, int cachedTokens, double seconds) {}

    /// What was measured, and what was made of it.
    ///
    /// @param measurements by length, then by cached tokens
    public record Result(EngineCalibration calibration, List<Measurement> measurements) {

        public Result {
            measurements = List.copyOf(measurements);
        }
    }

    /// Measures.
    ///
    /// @param rounds of all lengths, at least 1
    /// @param seed of the prompts; another than before, as these may be cached
    /// @throws IOException when the server fails, or finds nothing again
    public Result calibrate(int rounds, long seed) throws IOException, InterruptedException {
        SplittableRandom random = new SplittableRandom(seed);
        List<Completion> asked = new ArrayList<>();
        for (int round = -WARM_UPS; round < rounds; round++) {
            for (int i = 0; i < SHARES.length; i++) {
                progress.accept(
                        round < 0
                                ? "warming up"
                                : "measuring, round " + (round + 1) + " of " + rounds + ", prompt " + (i + 1) + " of "
                                        + SHARES.length);
                List<Completion> three = ask(random, (int) Math.round(SHARES[i] * longestPrompt));
                if (round >= 0) {
                    asked.addAll(three);
                }
            }
        }
        return fit(asked);
    }

    /// A prompt that is new, the same again, and one that shares its first half.
    private List<Completion> ask(SplittableRandom random, int length) throws IOException, InterruptedException {
        int[] prompt = PromptTokens.random(random, length);
        int[] half = PromptTokens.random(random, length);
        System.arraycopy(prompt, 0, half, 0, length / 2);
        List<Completion> three = new ArrayList<>();
        for (int[] each : new int[][] {prompt, prompt, half}) {
            Completion completion = server.complete(each, ANSWER_TOKENS);
            if (completion.promptTokens() != length) {
                throw new IOException(server.address() + " counts " + completion.promptTokens()
                        + " tokens in a prompt of " + length + ": it does not take prompts of token ids as they are");
            }
            three.add(completion);
            Thread.sleep(pause);
        }
        return three;
    }

    private Result fit(List<Completion> asked) throws IOException {
        int[] cached = asked.stream()
                .mapToInt(Completion::cachedTokens)
                .filter(tokens -> tokens > 0)
                .toArray();
        if (cached.length == 0) {
            throw new IOException(server.address() + " found none of its prompts again: its cache is off, or its usage"
                    + " has no prompt_tokens_details.cached_tokens (vLLM: --enable-prompt-tokens-details)");
        }
        TreeMap<PromptKind, List<Double>> kinds =
                new TreeMap<>(Comparator.comparing(PromptKind::promptTokens).thenComparing(PromptKind::cachedTokens));
        for (Completion each : asked) {
            kinds.computeIfAbsent(new PromptKind(each.promptTokens(), each.cachedTokens()), _ -> new ArrayList<>())
                    .add(each.firstTokenSeconds());
        }
        List<Measurement> measurements = new ArrayList<>();
        kinds.forEach((kind, seconds) ->
                measurements.add(new Measurement(kind.promptTokens, kind.cachedTokens, Median.of(seconds))));
        double[] fitted = solve(measurements);
        EngineCalibration calibration = new EngineCalibration(
                server.address(),
                server.model(),
                Instant.now(),
                fitted[0],
                fitted[1],
                fitted[2],
                fitted[3],
                outputSeconds(asked),
                blockTokens(cached),
                longestPrompt,
                0);
        return new Result(calibration.withMedianError(medianError(calibration, measurements)), measurements);
    }

    /// Fits the times of a request, of a token, of a pair and of a cached token: none of them below 0, with the
    /// least sum of squares of relative errors.
    private static double[] solve(List<Measurement> measurements) {
        double[][] rows = new double[measurements.size()][];
        for (int i = 0; i < rows.length; i++) {
            Measurement each = measurements.get(i);
            double tokens = each.promptTokens - each.cachedTokens;
            double pairs = tokens * (each.promptTokens + each.cachedTokens) / 2.0;
            rows[i] = new double[] {
                1 / each.seconds, tokens / each.seconds, pairs / each.seconds, each.cachedTokens / each.seconds
            };
        }
        return NonNegativeLeastSquares.solve(rows);
    }

    private static double medianError(EngineCalibration calibration, List<Measurement> measurements) {
        return Median.of(
                measurements,
                each -> Math.abs(
                        calibration.firstTokenSeconds(each.promptTokens, each.cachedTokens) / each.seconds - 1));
    }

    /// From one token of an answer to the next; 0 where answers have one token.
    private static double outputSeconds(List<Completion> asked) {
        double[] seconds = asked.stream()
                .filter(each -> each.outputTokens() > 1)
                .mapToDouble(each -> (each.totalSeconds() - each.firstTokenSeconds()) / (each.outputTokens() - 1))
                .toArray();
        return seconds.length == 0 ? 0 : Median.of(seconds);
    }

    /// The largest number of tokens of which all cached beginnings are multiples.
    private static int blockTokens(int[] cached) {
        return Arrays.stream(cached)
                .mapToObj(BigInteger::valueOf)
                .reduce(BigInteger::gcd)
                .orElse(BigInteger.ONE)
                .intValueExact();
    }
}
