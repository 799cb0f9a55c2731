package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.generator.RandomPrompts;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.BufferedReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Inference JVMs that are gone without a word, and what the next one has of them.
@Timeout(300)
@Tag("slow")
final class ProcessRestartTest {

    @TempDir
    private Path folder;

    private String speak(int known, String... store) throws Exception {
        Path model = RandomLlama.SMALL.write(folder.resolve("model"));
        List<String> java = List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "--add-modules",
                "jdk.incubator.vector",
                "-cp",
                System.getProperty("java.class.path"),
                InferenceProcess.class.getName(),
                model.toString());
        Process process = new ProcessBuilder(joined(joined(java, store), String.valueOf(known)))
                .redirectError(folder.resolve("errors").toFile())
                .start();
        try (BufferedReader said = process.inputReader(StandardCharsets.UTF_8)) {
            String all = said.readAllAsString();
            assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).as(all).isZero();
            return all.strip();
        } finally {
            process.destroyForcibly();
        }
    }

    private static List<String> joined(List<String> first, String... second) {
        return Stream.concat(first.stream(), Arrays.stream(second)).toList();
    }

    private static String expected(int cached) {
        int[] prompt = RandomPrompts.random(77, InferenceProcess.LENGTH);
        return "cached " + cached + ", said "
                + Arrays.toString(
                        JlamaTestModels.generateUncached(JlamaTestModels.small(), prompt, InferenceProcess.TOKENS)
                                .tokens());
    }

    @Test
    void givenADisk_whenTheJvmIsGone_thenTheNextOneHasItsPrefix() throws Exception {
        String disk = folder.resolve("disk").toString();
        assertThat(speak(0, "disk", disk)).isEqualTo(expected(0));
        assertThat(speak(96, "disk", disk)).isEqualTo(expected(96));
    }

    @Test
    void givenAServer_whenAnotherJvmAsks_thenItHasTheFirstsPrefix() throws Exception {
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        try (TieredKvCache served = TieredKvCache.builder().hostBytes(64L << 20).build();
                TcpEndpoint endpoint = TcpEndpoint.open(served, any, EndpointOptions.DEFAULTS)) {
            String address = "127.0.0.1:" + endpoint.address().getPort();
            assertThat(speak(0, "server", address)).isEqualTo(expected(0));
            assertThat(speak(96, "server", address)).isEqualTo(expected(96));
        }
    }
}
