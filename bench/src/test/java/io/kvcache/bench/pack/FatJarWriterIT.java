package io.kvcache.bench.pack;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.RespClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The one jar of what this build made, as somebody has it who has nothing else. Runs after the jars are there.
final class FatJarWriterIT {

    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final Path TARGET =
            Path.of("..", "server", "target").normalize().toAbsolutePath();
    private static final String JAVA =
            Path.of(System.getProperty("java.home"), "bin", "java").toString();
    private static final Pattern SERVES = Pattern.compile("KVCache (\\S+) serves at 127\\.0\\.0\\.1:(\\d+): .*");
    private static final byte[] VALUE = new byte[1 << 20];

    @TempDir
    private static Path folder = Path.of("");

    private static Path jar = folder;

    @BeforeAll
    static void makeIt() throws IOException {
        List<Path> ours;
        try (var files = Files.newDirectoryStream(TARGET, "kvcache-server-*.jar")) {
            ours = Stream.of(files.iterator().next()).toList();
        }
        jar = folder.resolve("kvcache.jar");
        try (var libraries = Files.list(TARGET.resolve("lib"))) {
            FatJarWriter.write(
                    jar,
                    Stream.concat(ours.stream(), libraries.sorted()).toList(),
                    List.of(ROOT.resolve("LICENSE"), ROOT.resolve("NOTICE")));
        }
    }

    private ProcessBuilder inAnEmptyFolder(String... command) throws IOException {
        Path empty = Files.createTempDirectory(folder, "empty");
        ProcessBuilder builder = new ProcessBuilder(command).directory(empty.toFile());
        builder.environment().clear();
        builder.environment().putAll(Map.of("PATH", "/usr/bin:/bin", "JAVA_HOME", System.getProperty("java.home")));
        builder.redirectError(folder.resolve("errors").toFile());
        return builder;
    }

    /// Runs to the end.
    private String output(ProcessBuilder builder) throws IOException, InterruptedException {
        Process process = builder.start();
        String text = new String(process.getInputStream().readAllBytes(), UTF_8);
        assertThat(process.waitFor()).as(this::errors).isZero();
        return text;
    }

    /// Serves a value and stops, as [#errors] then shows without a word to say about it; what it said of itself.
    private String served(ProcessBuilder builder) throws IOException, InterruptedException {
        Process process = builder.start();
        try (BufferedReader said = process.inputReader(UTF_8)) {
            String first = String.valueOf(said.readLine());
            Matcher serves = SERVES.matcher(first);
            assertThat(serves.matches()).as(() -> first + errors()).isTrue();
            try (RespClient client =
                    new RespClient(ClientConfig.open("127.0.0.1", Integer.parseInt(serves.group(2))))) {
                assertThat(client.call("PING").asText()).isEqualTo("PONG");
                client.set("key", VALUE);
                assertThat(client.call("GET", "key").bytes()).isEqualTo(VALUE);
            }
            assertThat(process.toHandle().destroy()).isTrue();
            String rest = said.readAllAsString();
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).isZero();
            assertThat(rest).endsWith("KVCache stopped\n");
            return first + "\n" + rest;
        } finally {
            process.destroyForcibly();
        }
    }

    private String errors() {
        try {
            return Files.readString(folder.resolve("errors"));
        } catch (IOException none) {
            return "nothing was said";
        }
    }

    @Test
    void givenTheJarAlone_whenItServes_thenNothingIsMissing() throws Exception {
        ProcessBuilder serve = inAnEmptyFolder(
                JAVA,
                "-jar",
                jar.toString(),
                "serve",
                "--port",
                "0",
                "--host-bytes",
                "64MiB",
                "--aeron",
                "aeron:ipc?dir=" + folder.resolve("aeron"));

        String said = served(serve);

        assertThat(said).doesNotContain("(development)").contains("  other JVMs at aeron:ipc");
        if (System.getProperty("os.name").equals("Linux")) {
            assertThat(said).as("the natives are in the jar").containsPattern("(epoll|io_uring), \\d+ loops");
        }
        assertThat(errors()).doesNotContain("WARNING", "SEVERE", "Exception");
        assertThat(serve.directory()).isEmptyDirectory();
    }

    @Test
    void givenTheFilesOfTheImage_whenRehearsedAndServed_thenWhatWasLoadedIsMapped() throws Exception {
        Path image = Files.createDirectory(folder.resolve("image"));
        Files.createLink(image.resolve("kvcache.jar"), jar);
        Path entry = Files.copy(ROOT.resolve("deploy/entry"), image.resolve("entry"));
        assertThat(entry.toFile().setExecutable(true)).isTrue();
        Files.copy(ROOT.resolve(".mvn/java-flags.sh"), image.resolve("java-flags.sh"));

        output(inAnEmptyFolder(entry.toString(), "rehearse"));

        assertThat(image.resolve("kvcache.aot")).isNotEmptyFile();
        ProcessBuilder serve = inAnEmptyFolder(entry.toString(), "serve", "--port", "0", "--host-bytes", "64MiB");
        serve.environment().put("KVCACHE_JAVA_OPTS", "-XX:AOTMode=on"); // Fails where it cannot be mapped.
        served(serve);
    }
}
