package io.kvcache.server.readme;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.TestJvm;
import io.kvcache.server.cli.Kvcache;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// The class of docs/embedding.md that two JVMs run to share prefixes.
@Timeout(600)
@Tag("slow")
final class SharedPrefixesTest {

    private static final Pattern EXAMPLE =
            Pattern.compile("## Embedding, or a shared server.*?```java\n(.*?)```", Pattern.DOTALL);

    @TempDir
    private Path folder;

    private static ProcessBuilder java(List<String> arguments) {
        List<String> command = new ArrayList<>(List.of(TestJvm.program()));
        command.addAll(TestJvm.FLAGS);
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path")));
        command.addAll(arguments);
        return new ProcessBuilder(command);
    }

    private Path example() throws IOException {
        Matcher shown = EXAMPLE.matcher(Files.readString(Path.of("..", "docs", "embedding.md")));
        assertThat(shown.find()).as("the example in docs/embedding.md").isTrue();
        return Files.writeString(folder.resolve("SharedPrefixes.java"), shown.group(1));
    }

    /// Runs the example in a JVM of its own; answers what it said.
    private static String run(Path example, String... server) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(example.toString()));
        arguments.addAll(List.of(server));
        Process process = java(arguments).redirectErrorStream(true).start();
        try (BufferedReader said = process.inputReader(UTF_8)) {
            String all = said.readAllAsString();
            assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).as(all).isZero();
            return all;
        } finally {
            process.destroyForcibly();
        }
    }

    @Test
    void givenTheExample_whenRunWithoutAServer_thenItStartsFromNothing() throws Exception {
        assertThat(run(example())).contains("0 of 4 blocks were there");
    }

    @Test
    void givenAServer_whenTwoJvmsRunTheExample_thenTheSecondFindsWhatTheFirstStored() throws Exception {
        Path example = example();
        Process server = java(List.of(
                        Kvcache.class.getName(),
                        "serve",
                        "--port",
                        "0",
                        "--transport",
                        "127.0.0.1:0",
                        "--host-bytes",
                        "64MiB"))
                .redirectError(folder.resolve("errors").toFile())
                .start();
        try (BufferedReader said = server.inputReader(UTF_8)) {
            Matcher place = Pattern.compile("  engines at (127\\.0\\.0\\.1:\\d+), no authentication")
                    .matcher("");
            while (!place.matches()) {
                place.reset(Objects.requireNonNull(said.readLine(), "the server has ended"));
            }

            assertThat(run(example, place.group(1))).contains("0 of 4 blocks were there");
            assertThat(run(example, place.group(1))).contains("4 of 4 blocks were there");

            assertThat(server.toHandle().destroy()).isTrue();
            assertThat(server.waitFor(120, TimeUnit.SECONDS)).isTrue();
            assertThat(server.exitValue()).isZero();
        } finally {
            server.destroyForcibly();
        }
    }
}
