package io.kvcache.planner.serving;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.serving.PredictionCheck.PromptTokens;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceRequest;
import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class PredictionCheckTest {

    private static final Trace TRACE = new TraceGenerator(Workload.mixed(), 5).generate("generated:5", 60);

    private static final EngineCalibration TIMES = new EngineCalibration(
            "http://simulated:1", "simulated", Instant.EPOCH, 1e-4, 1e-6, 0, 1e-7, 1e-6, 16, 100_000, 0);

    private static PredictionCheck.Outcome run(SimulatedServer server, EngineCalibration times, List<Integer> sent)
            throws IOException, InterruptedException {
        return new PredictionCheck(server, times, new PolicyReplay(PolicyKind.LRU))
                .run(TRACE, 0.5, 1_000_000, 7, sent::add);
    }

    @Test
    void givenAServerThatKeepsAll_whenChecked_thenItFindsWhatWasPredicted() throws Exception {
        List<Integer> sent = new ArrayList<>();
        PredictionCheck.Outcome outcome = run(new SimulatedServer(16, 1_000_000), TIMES, sent);
        assertThat(outcome.answers()).hasSize(60);
        assertThat(sent).hasSize(60).last().isEqualTo(60);
        assertThat(outcome.predictedCachedTokens()).isPositive();
        assertThat(outcome.measuredCachedTokens()).isEqualTo(outcome.predictedCachedTokens());
        assertThat(outcome.measuredSeconds(0.5)).isGreaterThan(SimulatedServer.REQUEST);
        assertThat(outcome.cutPrompts()).isZero();
    }

    @Test
    void givenALoad_whenChecked_thenTheEngineIsBusyForThatShare() throws Exception {
        PredictionCheck.Outcome outcome = run(new SimulatedServer(16, 1_000_000), TIMES, new ArrayList<>());
        double span = outcome.scaled().spanMinutes() * 60;
        assertThat(outcome.predicted().busySeconds() / span).isCloseTo(0.5, within(0.05));
    }

    @Test
    void givenAServerThatRefuses_whenChecked_thenNothingIsComparedAndTheReasonIsNamed() {
        List<Integer> sent = new ArrayList<>();
        assertThatThrownBy(() -> run(new SimulatedServer(16, 0), TIMES, sent))
                .isInstanceOf(IOException.class)
                .hasMessageMatching("request 1 of 60 was not answered: the prompt has \\d+ tokens");
        assertThat(sent).hasSizeLessThan(60);
    }

    @Test
    void givenLongPrompts_whenScaled_thenTheyAreCutAndBlocksStayEqual() {
        Trace trace = new Trace(
                "t",
                512,
                List.of(
                        new TraceRequest(0, 1100, 100, new long[] {1, 2, 3}),
                        new TraceRequest(1000, 1030, 3, new long[] {1, 2, 4}),
                        new TraceRequest(2000, 5, 0, new long[] {5})));
        Trace scaled = trace.scaledTo(16, 33);
        assertThat(scaled.blockTokens()).isEqualTo(16);
        assertThat(scaled.requests()).extracting(TraceRequest::inputTokens).containsExactly(33, 32, 1);
        assertThat(scaled.requests()).extracting(TraceRequest::outputTokens).containsExactly(3, 1, 0);
        assertThat(scaled.requests().get(1).hashIds()).containsExactly(1, 2);
        assertThat(scaled.withSpeed(4).requests())
                .extracting(TraceRequest::timestampMillis)
                .containsExactly(0L, 250L, 500L);
        int[] first = PromptTokens.of(scaled.requests().get(0), 16, 9);
        int[] second = PromptTokens.of(scaled.requests().get(1), 16, 9);
        assertThat(first).startsWith(second);
        assertThat(PromptTokens.of(scaled.requests().get(1), 16, 10)).isNotEqualTo(second);
    }
}
