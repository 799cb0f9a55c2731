package io.kvcache.server.image;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.config.HostResources;
import io.kvcache.server.image.ImageEntry.JvmFlags;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class JvmFlagsTest {

    private static final String SCRIPT = """
            source ../.mvn/java-flags.sh
            memory_kib() { echo "$KIB"; }
            java_flags "$1"
            printf '%s\\n' "${flags[@]}"
            """;

    private static List<String> ofTheScript(String command, long bytes, String options) throws Exception {
        ProcessBuilder builder = new ProcessBuilder("bash", "-c", SCRIPT, "bash", command);
        builder.environment().put("KIB", Long.toString(bytes / 1024));
        builder.environment().put("KVCACHE_JAVA_OPTS", options);
        Process process = builder.redirectErrorStream(true).start();
        return new String(process.getInputStream().readAllBytes(), UTF_8)
                .lines()
                .toList();
    }

    @ParameterizedTest
    @ValueSource(longs = {100L << 20, 1L << 30, 4_000_000_000L, 8L << 30, 1L << 40})
    void givenAContainer_whenACommandRuns_thenItHasTheFlagsOfACheckout(long bytes) throws Exception {
        HostResources host = new HostResources(bytes, 2);
        for (String command : List.of("serve", "ping", "rehearse")) {
            assertThat(JvmFlags.of(command, host, Map.of())).isEqualTo(ofTheScript(command, bytes, ""));
        }
    }

    @Test
    void givenFlagsOfOnesOwn_whenACommandRuns_thenTheyComeLast() throws Exception {
        List<String> flags =
                JvmFlags.of("serve", new HostResources(1L << 30, 2), Map.of("KVCACHE_JAVA_OPTS", " -Xmx1g  -ea "));

        assertThat(flags).endsWith("-Xmx1g", "-ea").isEqualTo(ofTheScript("serve", 1L << 30, " -Xmx1g  -ea "));
    }
}
