package io.kvcache.bench.launcher;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// How `./kvcache` replaces what runs, in a checkout whose Maven and JVM are a few lines of shell: this Maven puts the
/// content of the file `version` into the jars, this JVM prints its main class and what its jars hold, and the jars
/// again after a line of input.
@Tag("slow")
class BuildSwapTest {

    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();

    private static final String MAVEN = """
            #!/usr/bin/env bash
            cd "$(dirname "$0")" || exit 1
            echo '[INFO] Building KVCache 1                       [0/2]'
            echo '[INFO] Building KVCache core 1                  [1/2]'
            [ ! -f broken ] || { echo '[ERROR] it is broken'; exit 1; }
            echo '[INFO] Building KVCache bench 1                 [2/2]'
            mkdir -p {server,bench,engines/cli}/target/lib
            for part in server bench engines/cli; do
                cp version $part/target/lib/a.jar
                cp version $part/target/kvcache-$(echo $part | tr / -)-1.jar
            done
            cp version bench/target/kvcache-hitrate.jar
            """;

    private static final String JVM = """
            #!/usr/bin/env bash
            while [ $# -gt 0 ] && [ "$1" != -cp ]; do shift; done
            [ "$4" != rehearse ] || exit 0
            jar=${2%%:*}
            cat "$jar" "${jar%/*}"/lib/a.jar
            echo "$3 from ${jar##*/}"
            echo "asked for ${*:4}"
            read -r _ || true
            cat "$jar" "${jar%/*}"/lib/a.jar
            """;

    @TempDir
    private Path folder;

    @BeforeEach
    void layOut() throws IOException {
        script(folder.resolve("mvnw"), MAVEN);
        script(folder.resolve("jdk/bin/java"), JVM);
        script(folder.resolve("jdk/bin/javac"), "");
        Files.writeString(folder.resolve("jdk/release"), "JAVA_VERSION=\"25.0.1\"\n");
        Files.copy(REPOSITORY.resolve("kvcache"), folder.resolve("kvcache"));
        Files.createDirectories(folder.resolve(".mvn"));
        for (String file : List.of("find-jdk.sh", "java-flags.sh", "gpu-kit.sh", "release.sh", "image.sh")) {
            Files.copy(
                    REPOSITORY.resolve(".mvn").resolve(file),
                    folder.resolve(".mvn").resolve(file));
        }
        Files.createDirectories(folder.resolve("bench/src"));
        Files.createDirectories(folder.resolve("engines/chat/src"));
        Files.writeString(folder.resolve("engines/chat/pom.xml"), "");
        Files.writeString(folder.resolve("bench/pom.xml"), "");
        Files.writeString(folder.resolve("pom.xml"), "");
        version("one");
    }

    @Test
    void givenNoBuild_whenACommandRuns_thenItNamesTheModulesAndHowLongTheyTook() throws Exception {
        String said = answer("doctor", 0);
        assertThat(said)
                .contains("first run", "[0/2] (all modules)", "[1/2] core", "[2/2] bench", "one")
                .containsPattern("Built in \\d+ s");
        assertThat(answer("doctor", 0)).doesNotContain("Built").contains("one");
    }

    @Test
    void givenACommand_whenItRuns_thenItsOwnPartOfTheBuildRunsIt() throws Exception {
        assertThat(answer("doctor", 0)).contains("io.kvcache.server.cli.Kvcache from kvcache-server-1.jar");
        assertThat(answer("--version", 0)).contains("io.kvcache.server.cli.Kvcache from kvcache-server-1.jar");
        assertThat(answer("lab", 0)).contains("io.kvcache.bench.cli.Kvcache from kvcache-bench-1.jar");
        assertThat(answer("chat-server", 0)).contains("io.kvcache.engines.cli.Kvcache from kvcache-engines-cli-1.jar");
        assertThat(answer("help", 0)).contains("io.kvcache.engines.cli.Kvcache from kvcache-engines-cli-1.jar");
    }

    @Test
    void givenHelpOnACommand_whenItIsTheScripts_thenTheScriptAnswersElseTheProgramIsAsked() throws Exception {
        assertThat(answer("help srve", 0)).contains("asked for help srve");
        assertThat(answer("help install", 0)).contains("install the artifacts").doesNotContain("asked for");
    }

    @Test
    void givenABuild_whenTheNextOneFails_thenWhatWasBuiltIsStillThere() throws Exception {
        answer("doctor", 0);
        version("two");
        Files.writeString(folder.resolve("broken"), "");
        assertThat(answer("build", 1)).contains("the build failed", "still there", "it is broken");

        Files.setLastModifiedTime(folder.resolve(".kvcache/run/built"), FileTime.from(Instant.now()));
        assertThat(answer("doctor", 0)).contains("one").doesNotContain("two");
    }

    @Test
    void givenATestRunThatFails_whenACommandRunsAfterIt_thenItHasAllItsLibraries() throws Exception {
        answer("doctor", 0);
        Files.writeString(folder.resolve("broken"), "");
        answer("test", 1);
        assertThat(folder.resolve("server/target/lib")).doesNotExist();
        assertThat(answer("doctor", 0)).doesNotContain("No such file").contains("one");
    }

    @Test
    void givenACommandThatRuns_whenAnotherBuildTakesItsPlace_thenItKeepsItsOwnUntilItEnds() throws Exception {
        answer("doctor", 0);
        Process running = launch("serve");
        try (OutputStream input = running.getOutputStream()) {
            assertThat(running.inputReader(UTF_8).readLine()).isEqualTo("one");
            version("two");
            assertThat(answer("build", 0)).contains("Built");
            assertThat(answer("doctor", 0)).contains("two");
            assertThat(builds()).isEqualTo(2);
            input.write('\n');
        }
        String rest = new String(running.getInputStream().readAllBytes(), UTF_8);
        assertThat(running.waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(rest).doesNotContain("No such file").doesNotContain("two");

        answer("build", 0);
        assertThat(builds()).as("builds, after the next one").isEqualTo(1);
    }

    private long builds() throws IOException {
        try (Stream<Path> builds = Files.list(folder.resolve(".kvcache/builds"))) {
            return builds.count();
        }
    }

    private void version(String version) throws IOException {
        Files.writeString(folder.resolve("version"), version + "\n");
    }

    /// As on a new machine: Maven was never brought, and there is none on the PATH.
    @Test
    void givenNoMaven_whenBuilt_thenTheErrorHasTheCommandThatInstallsIt() throws Exception {
        Files.copy(REPOSITORY.resolve("mvnw"), folder.resolve("mvnw"), StandardCopyOption.REPLACE_EXISTING);
        Path tools = Files.createDirectories(folder.resolve("tools"));
        try (Stream<Path> programs = Files.list(Path.of("/usr/bin"))) {
            for (Path program : programs.toList()) {
                if (!program.endsWith("mvn")) {
                    Files.createSymbolicLink(tools.resolve(program.getFileName()), program);
                }
            }
        }
        ProcessBuilder builder = builder("build");
        builder.environment().put("PATH", tools.toString());
        builder.environment().put("KVCACHE_MAVEN_HOME", folder.resolve("none").toString());

        assertThat(answer(builder.start(), 1))
                .contains("needs any Maven 3 on the PATH", "apt-get install --no-install-recommends maven");
    }

    private String answer(String command, int exit) throws Exception {
        return answer(launch(command), exit);
    }

    private static String answer(Process process, int exit) throws Exception {
        process.getOutputStream().close();
        String text = new String(process.getInputStream().readAllBytes(), UTF_8);
        assertThat(process.waitFor()).as(text).isEqualTo(exit);
        return text;
    }

    private Process launch(String command) throws IOException {
        return builder(command).start();
    }

    private ProcessBuilder builder(String command) {
        ProcessBuilder builder = new ProcessBuilder((folder.resolve("kvcache") + " " + command).split(" ", -1));
        builder.environment().put("JAVA_HOME", folder.resolve("jdk").toString());
        builder.environment().remove("KVCACHE_BUILDING");
        return builder.redirectErrorStream(true);
    }

    private static void script(Path file, String text) throws IOException {
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
        assertThat(file.toFile().setExecutable(true)).isTrue();
    }
}
