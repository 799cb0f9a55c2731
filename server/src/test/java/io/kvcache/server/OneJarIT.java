package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.RespClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The one jar that this build made, alone in an empty folder. Runs after `package` has left it.
final class OneJarIT {

    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final Path TARGET =
            Path.of("..", "server", "target").normalize().toAbsolutePath();
    private static final String JAVA =
            Path.of(System.getProperty("java.home"), "bin", "java").toString();
    private static final Pattern SERVES = Pattern.compile("KVCache (\\S+) serves at 127\\.0\\.0\\.1:(\\d+): .*");
    private static final byte[] VALUE = new byte[1 << 20];

    @TempDir
    private static Path folder = Path.of("");

    private static final Path JAR = TARGET.resolve("kvcache.jar");

    private static List<JarFile> parts() throws IOException {
        List<JarFile> parts = new ArrayList<>();
        for (Path folder : List.of(TARGET, TARGET.resolve("lib"))) {
            try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "*-[0-9]*.jar")) {
                for (Path file : files) {
                    parts.add(new JarFile(file.toFile()));
                }
            }
        }
        return parts;
    }

    @Test
    void givenTheServersJars_whenShaded_thenNothingButBordersAndSignaturesIsLeftOut() throws IOException {
        try (JarFile all = new JarFile(JAR.toFile())) {
            for (JarFile part : parts()) {
                try (part) {
                    assertThat(
                                    part.stream()
                                            .map(JarEntry::getName)
                                            .filter(name -> !name.endsWith("/"))
                                            .filter(name -> !name.matches(
                                                    "META-INF/(maven/org\\.webjars|resources/webjars)/?.*")) // below
                                            .filter(
                                                    name -> !name.matches(
                                                            "META-INF/(MANIFEST\\.MF|INDEX\\.LIST|SIG-.*"
                                                                    + "|[^/]+\\.(SF|RSA|DSA|EC))|(META-INF/versions/\\d+/)?module-info\\.class")))
                            .as(part.getName())
                            .allSatisfy(name -> assertThat(all.getEntry(name)).isNotNull());
                    for (JarEntry list : part.stream()
                            .filter(entry -> entry.getName().matches("META-INF/(services/.+|LICENSE|NOTICE)"))
                            .toList()) {
                        assertThat(lines(all, list.getName()))
                                .as(part.getName())
                                .containsAll(lines(part, list.getName()));
                    }
                }
            }
            assertThat(all.stream().map(JarEntry::getName))
                    .as("of the console's libraries what its pages load")
                    .filteredOn(name -> name.startsWith("META-INF/resources/webjars/") && !name.endsWith("/"))
                    .hasSize(4)
                    .anyMatch(name -> name.endsWith("/bootstrap.min.css"))
                    .anyMatch(name -> name.endsWith("/chart.umd.min.js"));
            assertThat(lines(all, "LICENSE")).isEqualTo(Files.readAllLines(ROOT.resolve("LICENSE")));
            assertThat(lines(all, "NOTICE")).isEqualTo(Files.readAllLines(ROOT.resolve("NOTICE")));
        }
    }

    private static List<String> lines(JarFile jar, String name) throws IOException {
        try (InputStream in = jar.getInputStream(jar.getEntry(name))) {
            return new String(in.readAllBytes(), UTF_8)
                    .lines()
                    .filter(line -> !name.startsWith("META-INF/services/") || !(line.isBlank() || line.startsWith("#")))
                    .toList();
        }
    }

    @Test
    void givenTheLaunchersFlags_whenShaded_thenTheManifestSaysWhatAManifestCan() throws IOException {
        String flags = Files.readString(ROOT.resolve(".mvn/java-flags.sh"));
        try (JarFile jar = new JarFile(JAR.toFile())) {
            Attributes main = jar.getManifest().getMainAttributes();
            assertThat(String.join(" ", values(flags, "--add-exports (\\S+)=ALL-UNNAMED")))
                    .isNotEmpty()
                    .isEqualTo(main.getValue("Add-Exports"));
            assertThat(values(flags, "--enable-native-access=([A-Z-]+)"))
                    .containsExactly(main.getValue("Enable-Native-Access"));
            assertThat(values(flags, "(--add-opens)")).isEmpty();
            assertThat(main.getValue("Main-Class")).isEqualTo("io.kvcache.server.cli.Kvcache");
            assertThat(main.getValue("Implementation-Version")).isNotEmpty();
            assertThat(jar.isMultiRelease()).isTrue();
        }
    }

    private static List<String> values(String flags, String pattern) {
        return Pattern.compile(pattern)
                .matcher(flags)
                .results()
                .map(found -> found.group(1))
                .toList();
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
                JAR.toString(),
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
    void givenTheFilesOfTheUnit_whenRehearsedAndServed_thenWhatWasLoadedIsMapped() throws Exception {
        Path unit = Files.createDirectory(folder.resolve("unit"));
        Files.copy(JAR, unit.resolve("kvcache.jar"));
        Path entry = Files.copy(ROOT.resolve("deploy/entry"), unit.resolve("entry"));
        assertThat(entry.toFile().setExecutable(true)).isTrue();
        Files.copy(ROOT.resolve(".mvn/java-flags.sh"), unit.resolve("java-flags.sh"));

        output(inAnEmptyFolder(entry.toString(), "rehearse"));

        assertThat(unit.resolve("kvcache.aot")).isNotEmptyFile();
        ProcessBuilder serve = inAnEmptyFolder(entry.toString(), "serve", "--port", "0", "--host-bytes", "64MiB");
        serve.environment().put("KVCACHE_JAVA_OPTS", "-XX:AOTMode=on"); // Fails where it cannot be mapped.
        served(serve);
    }
}
