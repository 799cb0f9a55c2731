package io.kvcache.server.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/// The server ships alone: no engine, no laboratory, no JMH, no GPU, no test-jar.
///
/// Maven writes what it resolves for the runtime into a file before the tests run. A new library of the server, also
/// one
/// that another library brings, needs a line here.
final class ServerClassPathTest {

    private static final Path RESOLVED = Path.of("target", "run-classpath.txt");

    /// Group, artifact, type, classifier (in some), version and scope.
    private static final Pattern ARTIFACT =
            Pattern.compile("\\s+[^:\\s]+:([^:]+):([^:]+)(?::([^:]+))?:[^:]+:(?:compile|runtime)\\b.*");

    private static final List<String> EXPECTED = List.of(
            "HdrHistogram",
            "aeron-client",
            "aeron-driver",
            "agrona",
            "caffeine",
            "error_prone_annotations",
            "jackson-annotations",
            "jackson-core",
            "jackson-databind",
            "jeromq",
            "jspecify",
            "kvcache-core",
            "kvcache-tiers",
            "kvcache-transport",
            "micrometer-commons",
            "micrometer-core",
            "micrometer-observation",
            "micrometer-registry-prometheus",
            "msgpack-core",
            "netty-buffer",
            "netty-codec-base",
            "netty-codec-http",
            "netty-common",
            "netty-handler",
            "netty-resolver",
            "netty-transport",
            "netty-transport-classes-epoll",
            "netty-transport-classes-io_uring",
            "netty-transport-native-epoll:linux-aarch_64",
            "netty-transport-native-epoll:linux-x86_64",
            "netty-transport-native-io_uring:linux-aarch_64",
            "netty-transport-native-io_uring:linux-x86_64",
            "netty-transport-native-unix-common",
            "picocli",
            "prometheus-metrics-config",
            "prometheus-metrics-core",
            "prometheus-metrics-exposition-textformats",
            "prometheus-metrics-model",
            "prometheus-metrics-tracer-common",
            "snakeyaml-engine");

    /// Artifacts by name, with the classifier after a colon, and the type unless it is a jar.
    private static List<String> resolved() throws IOException {
        assumeThat(RESOLVED).as("what Maven resolves").exists();
        return Files.readAllLines(RESOLVED).stream()
                .map(ARTIFACT::matcher)
                .filter(matcher -> matcher.matches())
                .map(artifact -> artifact.group(1)
                        + (artifact.group(3) == null ? "" : ":" + artifact.group(3))
                        + (artifact.group(2).equals("jar") ? "" : " of type " + artifact.group(2)))
                .sorted()
                .toList();
    }

    @Test
    void givenTheServersPom_whenResolvedForTheRuntime_thenTheseLibrariesShipAndNoOther() throws IOException {
        assertThat(resolved()).containsExactlyElementsOf(EXPECTED);
    }

    @Test
    void givenTheServersPom_whenResolvedForTheRuntime_thenNothingOfLaboratoryEnginesOrTestsShips() throws IOException {
        assertThat(resolved())
                .isNotEmpty()
                .noneMatch(artifact -> Pattern.compile("jlama|llama|jmh|chart|test|gpu|jcuda|bench|junit|assertj")
                        .matcher(artifact)
                        .find());
    }
}
