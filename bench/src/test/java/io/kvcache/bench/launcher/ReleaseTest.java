package io.kvcache.bench.launcher;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.TestJvm;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// `./kvcache release`, and a project that uses what it made by coordinates.
@Tag("nightly")
@Timeout(900)
class ReleaseTest {

    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();
    private static final String VERSION = "0.0.7";

    private static final List<String> LIBRARIES = List.of(
            "core",
            "tiers",
            "gpu-bridge",
            "transport",
            "transport-aeron",
            "transport-ucx",
            "cluster",
            "server",
            "generator",
            "jlama",
            "llamacpp",
            "chat",
            "langchain4j",
            "spring-boot-starter",
            "junit");

    private static final Pattern CODE = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
    private static final Pattern POM = Pattern.compile("```xml\n(.*?)```", Pattern.DOTALL);
    private static final Pattern REMOTE = Pattern.compile("engines at (\\S+:\\d+)");

    @TempDir
    private static Path folder;

    private static Path release;

    @BeforeAll
    static void make() throws Exception {
        release = folder.resolve("release");
        run(REPOSITORY, REPOSITORY.resolve("kvcache").toString(), "release", VERSION, release.toString());
    }

    @Test
    void givenAVersion_whenMadeAgain_thenEveryFileHasTheSameBytes() throws Exception {
        Path again = folder.resolve("again");
        run(REPOSITORY, REPOSITORY.resolve("kvcache").toString(), "release", VERSION, again.toString());
        Map<String, Long> first = differences(release, again);
        assertThat(first).isEmpty();
        assertThat(release.resolve("SHA256SUMS")).isNotEmptyFile();
    }

    /// Returns the files of either that the other has not, or with other bytes, and where these begin.
    private static Map<String, Long> differences(Path one, Path other) throws IOException {
        Map<String, Long> different = new TreeMap<>();
        for (Path place : List.of(one, other)) {
            try (Stream<Path> files = Files.walk(place).filter(Files::isRegularFile)) {
                for (Path file : files.toList()) {
                    Path name = place.relativize(file);
                    boolean both = Files.exists(one.resolve(name)) && Files.exists(other.resolve(name));
                    long at = both ? Files.mismatch(one.resolve(name), other.resolve(name)) : 0;
                    if (at >= 0) {
                        different.put(name.toString(), at);
                    }
                }
            }
        }
        return different;
    }

    @Test
    void givenAVersion_whenMade_thenEachLibraryHasWhatARepositoryAsksFor() throws Exception {
        Path artifacts = release.resolve("maven/io/kvcache");
        SoftAssertions all = new SoftAssertions();
        for (String library : LIBRARIES) {
            Path place = artifacts.resolve("kvcache-" + library).resolve(VERSION);
            for (String ending : List.of(".pom", ".jar", "-sources.jar", "-javadoc.jar", "-cyclonedx.json")) {
                all.assertThat(place.resolve("kvcache-" + library + "-" + VERSION + ending))
                        .isNotEmptyFile();
            }
            all.assertThat(place.resolve("kvcache-" + library + "-" + VERSION + ".pom"))
                    .content()
                    .contains("<name>", "<description>");
        }
        for (String pom : List.of("parent", "bom")) {
            Path file = artifacts.resolve("kvcache-%s/%s/kvcache-%1$s-%2$s.pom".formatted(pom, VERSION));
            all.assertThat(file)
                    .content()
                    .contains("<url>", "<licenses>", "<developers>", "<scm", "<name>", "<description>")
                    .doesNotContain("SNAPSHOT");
        }
        all.assertThat(artifacts.resolve("kvcache-bench")).doesNotExist();
        for (String file : List.of(".jar", ".cdx.json", ".tar.gz", "-py3-none-any.whl")) {
            all.assertThat(release.resolve("kvcache-" + VERSION + file)).isNotEmptyFile();
        }
        all.assertAll();
    }

    @Test
    void givenACleanProject_whenItNamesTheCoordinates_thenItEmbedsAStoreAndUsesAServer() throws Exception {
        Path project = folder.resolve("project");
        Files.createDirectories(project.resolve("src/main/java"));
        Files.writeString(
                project.resolve("pom.xml"),
                onPage(POM, "<artifactId>shared-prefixes</artifactId>")
                        .replace("0.1.0-SNAPSHOT", VERSION)
                        .replace(
                                "</project>",
                                "<repositories><repository><id>release</id><url>"
                                        + release.resolve("maven").toUri()
                                        + "</url></repository></repositories></project>"));
        Files.writeString(project.resolve("src/main/java/SharedPrefixes.java"), onPage(CODE, "class SharedPrefixes"));
        run(
                project,
                REPOSITORY.resolve("mvnw").toString(),
                "-q",
                "compile",
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                // What it brings of ours stays out of the user's repository, which has the other libraries.
                "-Dmaven.repo.local=" + folder.resolve("repository"),
                "-Dmaven.repo.local.tail=" + Path.of(System.getProperty("user.home"), ".m2/repository"),
                "-Dmaven.repo.local.tail.ignoreAvailability=true");
        assertThat(runExample(project)).isEqualTo("0 of 4 blocks were there\n");

        Process server = start(
                project,
                TestJvm.program(),
                "-jar",
                release.resolve("kvcache-" + VERSION + ".jar").toString(),
                "serve",
                "--port=0",
                "--host-bytes=64MiB",
                "--transport=127.0.0.1:0");
        try (BufferedReader lines = server.inputReader(UTF_8)) {
            String address = "";
            for (String line = lines.readLine(); line != null && address.isEmpty(); line = lines.readLine()) {
                Matcher remote = REMOTE.matcher(line);
                address = remote.find() ? remote.group(1) : "";
            }
            assertThat(runExample(project, address)).isEqualTo("0 of 4 blocks were there\n");
            assertThat(runExample(project, address)).isEqualTo("4 of 4 blocks were there\n");
        } finally {
            server.destroy();
        }
        assertThat(server.waitFor()).isZero();
    }

    /// Returns a text between fences of the page for those who embed a store.
    private static String onPage(Pattern kind, String part) throws IOException {
        return kind.matcher(Files.readString(REPOSITORY.resolve("docs/embedding.md")))
                .results()
                .map(found -> found.group(1))
                .filter(text -> text.contains(part))
                .findFirst()
                .orElseThrow();
    }

    private static String runExample(Path project, String... arguments) throws Exception {
        Path target = project.resolve("target");
        List<String> command = new ArrayList<>(List.of(
                TestJvm.program(),
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                target.resolve("classes") + ":" + target.resolve("dependency") + "/*",
                "SharedPrefixes"));
        command.addAll(List.of(arguments));
        return run(project, command.toArray(String[]::new));
    }

    /// Returns what it writes.
    private static String run(Path place, String... command) throws Exception {
        Process process = start(place, command);
        String said = new String(process.getInputStream().readAllBytes(), UTF_8);
        assertThat(process.waitFor()).as("%s:%n%s", List.of(command), said).isZero();
        return said;
    }

    private static Process start(Path place, String... command) throws IOException {
        ProcessBuilder builder =
                new ProcessBuilder(command).directory(place.toFile()).redirectErrorStream(true);
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        builder.environment().remove("MAVEN_GPG_KEY");
        return builder.start();
    }
}
