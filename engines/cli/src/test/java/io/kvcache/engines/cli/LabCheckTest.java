package io.kvcache.engines.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.engines.chat.ChatOptions;
import io.kvcache.engines.chat.ChatServer;
import io.kvcache.engines.cli.TextEngine.JlamaTextEngine;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.RandomLlama;
import io.kvcache.tiers.TieredKvCache;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The planner's predictions over a server with a real engine: what is found in the cache to the token. Times are
/// compared by hand, see docs/planning.md.
@Timeout(600)
@Tag("slow")
final class LabCheckTest {

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenAChatServer_whenCalibratedAndChecked_thenItFindsWhatWasPredicted() throws Exception {
        try (JlamaTextEngine engine = JlamaTextEngine.random(RandomLlama.SMALL);
                KvCache cache = TieredKvCache.builder().hostBytes(256L << 20).build();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(
                        engine.model(), cache, GeneratorOptions.DEFAULTS.withBlockTokens(4));
                ChatServer server = ChatServer.start(
                        generator,
                        ChatOptions.of(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "random"),
                        List.of())) {
            String url = "http://127.0.0.1:" + server.address().getPort();
            Path times = folder.resolve("times.json");
            CommandRunner.Run calibrated = CommandRunner.run(
                    "lab",
                    "calibrate",
                    url,
                    "--max-prompt",
                    "900",
                    "--rounds",
                    "1",
                    "--json",
                    "--out",
                    times.toString());
            assertThat(calibrated.exitCode()).as(calibrated.err()).isZero();
            JsonNode fitted = JsonMapper.shared().readTree(calibrated.out());
            assertThat(fitted.at("/blockTokens").intValue()).isEqualTo(4);
            assertThat(fitted.at("/model").stringValue()).isEqualTo("random");
            assertThat(fitted.at("/secondsPerToken").doubleValue()).isPositive();

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
