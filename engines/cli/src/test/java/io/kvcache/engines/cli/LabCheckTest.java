package io.kvcache.engines.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.KvCache;
import io.kvcache.engines.chat.ChatOptions;
import io.kvcache.engines.chat.ChatServer;
import io.kvcache.engines.cli.TextEngine.JlamaTextEngine;
import io.kvcache.engines.cli.TextEngine.LlamaTextEngine;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.TextModel;
import io.kvcache.engines.jlama.RandomLlama;
import io.kvcache.engines.llamacpp.LlamaOptions;
import io.kvcache.engines.llamacpp.RandomGguf;
import io.kvcache.planner.serving.EngineCalibration;
import io.kvcache.planner.serving.EngineCalibrator;
import io.kvcache.planner.serving.HttpCompletionServer;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The planner's predictions over a server with a real engine: what is found in the cache to the token. Times are
/// compared by hand, see docs/planning.md.
@Timeout(600)
@Tag("slow")
final class LabCheckTest {

    @TempDir
    private Path folder = Path.of("");

    private static TextEngine small(EngineKind kind) throws IOException {
        return switch (kind) {
            case JLAMA -> JlamaTextEngine.random(RandomLlama.SMALL);
            case LLAMACPP -> LlamaTextEngine.random(RandomGguf.SMALL, LlamaOptions.defaults(), Optional.empty());
        };
    }

    @ParameterizedTest
    @EnumSource
    void givenAChatServer_whenCalibratedAndChecked_thenItFindsWhatWasPredicted(EngineKind kind) throws Exception {
        assumeTrue(kind.isAvailable(), "the engine's library is not on the class path");
        try (TextEngine engine = small(kind);
                KvCache cache = TieredKvCache.builder().hostBytes(256L << 20).build();
                PrefixCachedGenerator<TextModel> generator = new PrefixCachedGenerator<>(
                        engine.model(), cache, GeneratorOptions.DEFAULTS.withBlockTokens(4));
                ChatServer server = ChatServer.start(
                        generator,
                        ChatOptions.of(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "random"),
                        List.of())) {
            String url = "http://127.0.0.1:" + server.address().getPort();
            Path times = folder.resolve("times.json");
            // Not by the command, which refuses the fit of a machine that is busy with other tests.
            try (HttpCompletionServer served = HttpCompletionServer.connect(url)) {
                EngineCalibration fitted = new EngineCalibrator(served, 900, _ -> {})
                        .calibrate(1, 1)
                        .calibration();
                assertThat(fitted.blockTokens()).isEqualTo(4);
                assertThat(fitted.model()).isEqualTo("random");
                assertThat(fitted.secondsPerToken()).isPositive();
                fitted.write(times);
            }

            CommandRunner.Run checked = CommandRunner.run(
                    "lab",
                    "check",
                    url,
                    "--calibrate",
                    times.toString(),
                    "--trace",
                    "generated:1",
                    "--requests",
                    "100",
                    "--json");
            assertThat(checked.exitCode()).as(checked.err()).isZero();
            JsonNode row = JsonMapper.shared().readTree(checked.out());
            assertThat(row.at("/requests").intValue()).isEqualTo(100);
            assertThat(row.at("/predictedTokenHitRatio").doubleValue()).isGreaterThan(0.3);
            // A prompt that comes while the one it shares blocks with is computed finds less; few do.
            assertThat(row.at("/measuredTokenHitRatio").doubleValue())
                    .isBetween(
                            row.at("/predictedTokenHitRatio").doubleValue() - 0.02,
                            row.at("/predictedTokenHitRatio").doubleValue() + 0.005);
            assertThat(row.at("/measuredTtftP99Seconds").doubleValue())
                    .isGreaterThanOrEqualTo(row.at("/measuredTtftP50Seconds").doubleValue())
                    .isPositive();
        }
    }
}
