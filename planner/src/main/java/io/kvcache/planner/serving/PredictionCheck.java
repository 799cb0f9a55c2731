package io.kvcache.planner.serving;

import io.kvcache.planner.lab.EngineSimulator;
import io.kvcache.planner.lab.EngineSimulator.EngineFeed;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.ReplayListener;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.serving.CompletionServer.Completion;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceRequest;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.IntConsumer;

/// Predicts what a server does with a trace, has the server do it, and compares.
///
/// The trace is scaled: its blocks to those of the server, and its times so that the engine is busy for a given
/// share of them. Requests are sent at their times, however long earlier ones take.
public final class PredictionCheck {

    private final CompletionServer server;
    private final EngineCalibration calibration;
    private final SimulatedCache policy;

    /// @param policy of the server's cache
    public PredictionCheck(CompletionServer server, EngineCalibration calibration, SimulatedCache policy) {
        this.server = server;
        this.calibration = calibration;
        this.policy = policy;
    }

    /// What is predicted and measured.
    ///
    /// @param scaled the trace as it was sent
    /// @param cutPrompts that were longer than the longest that was calibrated, and were cut
    /// @param predicted by the simulator
    /// @param predictedCachedTokens by the replay
    /// @param answers in the order of the requests; the time to the first token is from when the request was due
    public record Outcome(
            Trace scaled,
            int cutPrompts,
            EngineSimulator.Summary predicted,
            long predictedCachedTokens,
            List<Completion> answers) {

        public Outcome {
            answers = List.copyOf(answers);
        }

        /// Measured seconds to the first token.
        ///
        /// @param share of the requests that took no longer, above 0 to 1
        public double measuredSeconds(double share) {
            double[] sorted = answers.stream()
                    .mapToDouble(Completion::firstTokenSeconds)
                    .sorted()
                    .toArray();
            return EngineSimulator.percentile(sorted, share);
        }

        /// Tokens that the server found.
        public long measuredCachedTokens() {
            return answers.stream().mapToLong(Completion::cachedTokens).sum();
        }

        /// Tokens of all prompts.
        public long promptTokens() {
            return scaled.totals().inputTokens();
        }
    }

    /// Predicts and measures.
    ///
    /// @param load share of the time that the engine is to be busy, above 0
    /// @param blocks that the server's cache holds
    /// @param salt makes the prompts other ones than those of earlier runs, which may be cached
    /// @param progress told how many requests have been sent
    /// @throws IOException when a request is not answered: no more are sent then
    public Outcome run(Trace trace, double load, int blocks, long salt, IntConsumer progress)
            throws IOException, InterruptedException {
        Trace sized = trace.scaledTo(calibration.blockTokens(), calibration.longestPrompt());
        Prediction idle = predict(sized, blocks);
        double span = sized.spanMinutes() * 60;
        Trace scaled = span == 0 ? sized : sized.withSpeed(span * load / idle.summary.busySeconds());
        Prediction prediction = predict(scaled, blocks);
        int cut = (int) trace.requests().stream()
                .filter(request -> (long) request.inputTokens() * calibration.blockTokens() / trace.blockTokens()
                        > calibration.longestPrompt())
                .count();
        List<Completion> answers = send(scaled, salt, progress);
        return new Outcome(scaled, cut, prediction.summary, prediction.cachedTokens, answers);
    }

    private record Prediction(EngineSimulator.Summary summary, long cachedTokens) {}

    private Prediction predict(Trace trace, int blocks) {
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
        EngineFeed engine = new EngineFeed(trace, calibration.hardware(1), 0);
        HitCounter counter = new HitCounter(forest, 0, new ReplayListener() {
            @Override
            public void onFound(int request, int found) {
                int hits = Math.min(found, forest.lookupBlocks(request));
                engine.serve(request, hits, hits);
            }
        });
        long cachedTokens = policy.run(forest, blocks, counter).tokenHits();
        return new Prediction(engine.summary(), cachedTokens);
    }

    private List<Completion> send(Trace scaled, long salt, IntConsumer progress)
            throws IOException, InterruptedException {
        List<Callable<Completion>> requests = new ArrayList<>();
        for (TraceRequest request : scaled.requests()) {
            int[] prompt = PromptTokens.of(request, scaled.blockTokens(), salt);
            requests.add(() -> server.complete(prompt, Math.max(1, request.outputTokens())));
        }
        long first = scaled.requests().getFirst().timestampMillis();
        AtomicBoolean failed = new AtomicBoolean();
        List<Future<Completion>> pending = new ArrayList<>();
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            long start = System.nanoTime();
            for (int i = 0; i < requests.size() && !failed.get(); i++) {
                long due = start
                        + Duration.ofMillis(scaled.requests().get(i).timestampMillis() - first)
                                .toNanos();
                Thread.sleep(Duration.ofNanos(Math.max(0, due - System.nanoTime())));
                Callable<Completion> request = requests.get(i);
                pending.add(threads.submit(() -> {
                    try {
                        return sinceDue(request, due);
                    } catch (Exception unanswered) {
                        failed.set(true);
                        throw unanswered;
                    }
                }));
                progress.accept(i + 1);
            }
        }
        List<Completion> answers = new ArrayList<>();
        for (Future<Completion> each : pending) {
            try {
                answers.add(each.get());
            } catch (ExecutionException unanswered) {
                Throwable cause = unanswered.getCause();
                throw new IOException(
                        "request %s of %s was not answered: %s"
                                .formatted(
                                        answers.size() + 1,
                                        requests.size(),
                                        cause instanceof IOException ? cause.getMessage() : cause),
                        unanswered);
            }
        }
        return answers;
    }

    private static Completion sinceDue(Callable<Completion> request, long due) throws Exception {
        double late = (System.nanoTime() - due) / 1e9;
        Completion answer = request.call();
        return new Completion(
                late + answer.firstTokenSeconds(),
                late + answer.totalSeconds(),
                answer.promptTokens(),
                answer.cachedTokens(),
                answer.outputTokens());
    }

    /// Makes prompts of tokens that nearly every model has: those from 3 to 511, which are no special ones in
    /// most vocabularies.
    static final class PromptTokens {

        private static final int FIRST = 3;
        private static final int END = 512;
        private static final long BLOCK_FACTOR = 0x9e37_79b9_7f4a_7c15L;

        private PromptTokens() {}

        static int[] random(SplittableRandom random, int count) {
            return random.ints(count, FIRST, END).toArray();
        }

        /// The prompt of a request: requests with an id in common have its tokens in common.
        ///
        /// @param salt another one gives other tokens
        static int[] of(TraceRequest request, int blockTokens, long salt) {
            int[] prompt = new int[request.inputTokens()];
            for (int at = 0; at < prompt.length; at += blockTokens) {
                int block = at / blockTokens;
                // A tail without an id is the request's own.
                long id = block < request.hashIds().length
                        ? 2 * request.hashIds()[block]
                        : 2 * request.timestampMillis() + 1;
                int count = Math.min(blockTokens, prompt.length - at);
                System.arraycopy(random(new SplittableRandom(salt ^ id * BLOCK_FACTOR), count), 0, prompt, at, count);
            }
            return prompt;
        }
    }
}
