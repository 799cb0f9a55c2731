package io.kvcache.planner.serving;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.withinPercentage;

import io.kvcache.planner.serving.EngineCalibrator.NonNegativeLeastSquares;
import java.io.IOException;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class EngineCalibratorTest {

    private static EngineCalibrator.Result calibrate(CompletionServer server, int longestPrompt) throws Exception {
        return new EngineCalibrator(server, longestPrompt, _ -> {}).calibrate(2, 42);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 16, 64, 512})
    void givenAServerOfKnownTimes_whenCalibrated_thenTheseAreFound(int blockTokens) throws Exception {
        EngineCalibrator.Result result = calibrate(new SimulatedServer(blockTokens, 10_000), 4096);
        EngineCalibration times = result.calibration();
        assertThat(times.secondsPerRequest()).isCloseTo(SimulatedServer.REQUEST, withinPercentage(1));
        assertThat(times.secondsPerToken()).isCloseTo(SimulatedServer.PREFILL.secondsPerToken(), withinPercentage(1));
        assertThat(times.secondsPerPair()).isCloseTo(SimulatedServer.PREFILL.secondsPerPair(), withinPercentage(1));
        assertThat(times.secondsPerCachedToken()).isCloseTo(SimulatedServer.CACHED_TOKEN, withinPercentage(1));
        assertThat(times.secondsPerOutputToken()).isCloseTo(SimulatedServer.OUTPUT_TOKEN, withinPercentage(1));
        assertThat(times.blockTokens()).isEqualTo(blockTokens);
        assertThat(times.longestPrompt()).isEqualTo(4096);
        assertThat(times.medianError()).isLessThan(0.001);
        assertThat(result.measurements()).hasSizeBetween(11, 18);
    }

    @Test
    void givenAServerWithoutACache_whenCalibrated_thenTheErrorSaysSo() {
        assertThatThrownBy(() -> calibrate(new SimulatedServer(0, 10_000), 1024))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("found none of its prompts again")
                .hasMessageContaining("--enable-prompt-tokens-details");
    }

    @Test
    void givenAServerThatAddsTokens_whenCalibrated_thenTheErrorSaysSo() {
        SimulatedServer server = new SimulatedServer(16, 10_000);
        CompletionServer adding = new CompletionServer() {
            @Override
            public String address() {
                return server.address();
            }

            @Override
            public String model() {
                return server.model();
            }

            @Override
            public Completion complete(int[] prompt, int maxTokens) throws IOException {
                return server.complete(Arrays.copyOf(prompt, prompt.length + 1), maxTokens);
            }
        };
        assertThatThrownBy(() -> calibrate(adding, 1024))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("counts 33 tokens in a prompt of 32");
    }

    @Test
    void givenATimeThatWouldBeNegative_whenFitted_thenItIsZero() {
        // 1 and 2 tokens in 1 and 3 seconds: a line through both begins below 0.
        double[] fitted = NonNegativeLeastSquares.solve(new double[][] {{1, 1}, {1 / 3.0, 2 / 3.0}});
        assertThat(fitted[0]).isZero();
        assertThat(fitted[1]).isCloseTo((1 + 2 / 3.0) / (1 + 4 / 9.0), withinPercentage(0.001));
    }
}
