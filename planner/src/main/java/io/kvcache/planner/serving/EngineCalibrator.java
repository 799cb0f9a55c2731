package io.kvcache.planner.serving;

import io.kvcache.planner.Median;
import io.kvcache.planner.serving.CompletionServer.Completion;
import io.kvcache.planner.serving.PredictionCheck.PromptTokens;
import java.io.IOException;
import java.math.BigInteger;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.Consumer;

/// Measures an idle server and fits its times: prompts of several lengths, each asked while it is new, again
/// when it is cached, and with its first half cached, one after another without a pause.
public final class EngineCalibrator {

    /// Lengths of the prompts, as shares of the longest.
    private static final double[] SHARES = {1 / 32.0, 1 / 16.0, 1 / 8.0, 1 / 4.0, 1 / 2.0, 1};

    private static final int ANSWER_TOKENS = 16;
    private static final int WARM_UPS = 2;

    private final CompletionServer server;
    private final int longestPrompt;
    private final Consumer<String> progress;

    /// @param longestPrompt in tokens, at least 64
    /// @param progress told what is measured
    public EngineCalibrator(CompletionServer server, int longestPrompt, Consumer<String> progress) {
        this.server = server;
        this.longestPrompt = longestPrompt;
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
            String title = round < 0 ? "warming up" : "measuring, round " + (round + 1) + " of " + rounds;
            List<Completion> answers = ask(prompts(random), title);
            if (round >= 0) {
                asked.addAll(answers);
            }
        }
        return fit(asked);
    }

    /// Prompts of all lengths, first all that are new, then the same again, then those that share their first half:
    /// so a server has stored a prompt when it is asked again, and is as busy as it is under load.
    private List<int[]> prompts(SplittableRandom random) {
        List<int[]> fresh = new ArrayList<>();
        List<int[]> halves = new ArrayList<>();
        for (double share : SHARES) {
            int length = (int) Math.round(share * longestPrompt);
            int[] prompt = PromptTokens.random(random, length);
            int[] half = PromptTokens.random(random, length);
            System.arraycopy(prompt, 0, half, 0, length / 2);
            fresh.add(prompt);
            halves.add(half);
        }
        List<int[]> prompts = new ArrayList<>(fresh);
        prompts.addAll(fresh);
        prompts.addAll(halves);
        return prompts;
    }

    private List<Completion> ask(List<int[]> prompts, String title) throws IOException, InterruptedException {
        List<Completion> answers = new ArrayList<>();
        for (int[] prompt : prompts) {
            progress.accept(title + ", prompt " + (answers.size() + 1) + " of " + prompts.size());
            Completion completion = server.complete(prompt, ANSWER_TOKENS);
            if (completion.promptTokens() != prompt.length) {
                throw new IOException(
                        server.address() + " counts " + completion.promptTokens() + " tokens in a prompt of "
                                + prompt.length + ": it does not take prompts of token ids as they are");
            }
            answers.add(completion);
        }
        return answers;
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
        TreeMap<PromptKind, List<Double>> kinds = new TreeMap<>(
                Comparator.comparingInt(PromptKind::promptTokens).thenComparingInt(PromptKind::cachedTokens));
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

    /// Least squares of a few unknowns, none of them below 0.
    static final class NonNegativeLeastSquares {

        private static final int MAX_ROUNDS = 100_000;
        private static final double CONVERGED = 1e-13;

        private NonNegativeLeastSquares() {}

        /// Finds the unknowns for which the rows times them are closest to 1 each, one unknown after another
        /// until none of them changes.
        ///
        /// @param rows as many values each as there are unknowns
        static double[] solve(double[][] rows) {
            int count = rows[0].length;
            double[] scale = new double[count];
            for (double[] row : rows) {
                for (int i = 0; i < count; i++) {
                    scale[i] = Math.hypot(scale[i], row[i]);
                }
            }
            double[][] products = new double[count][count];
            double[] sums = new double[count];
            for (double[] row : rows) {
                for (int i = 0; i < count; i++) {
                    double value = scale[i] == 0 ? 0 : row[i] / scale[i];
                    sums[i] += value;
                    for (int j = 0; j < count; j++) {
                        products[i][j] += scale[j] == 0 ? 0 : value * row[j] / scale[j];
                    }
                }
            }
            double[] unknowns = descend(products, sums);
            for (int i = 0; i < count; i++) {
                unknowns[i] = scale[i] == 0 ? 0 : unknowns[i] / scale[i];
            }
            return unknowns;
        }

        private static double[] descend(double[][] products, double[] sums) {
            double[] unknowns = new double[sums.length];
            double change = 1;
            for (int round = 0; round < MAX_ROUNDS && change > CONVERGED; round++) {
                change = 0;
                for (int i = 0; i < unknowns.length; i++) {
                    if (products[i][i] == 0) {
                        continue;
                    }
                    double rest = sums[i];
                    for (int j = 0; j < unknowns.length; j++) {
                        rest -= j == i ? 0 : products[i][j] * unknowns[j];
                    }
                    double better = Math.max(0, rest / products[i][i]);
                    change = Math.max(change, Math.abs(better - unknowns[i]));
                    unknowns[i] = better;
                }
            }
            return unknowns;
        }
    }
}
