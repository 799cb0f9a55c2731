package io.kvcache.bench.launcher;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Scripts and files of `deploy/` in the eyes of Debian's linters.
@Tag("slow")
final class LintersTest {

    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();

    /// Long lines and one blank within braces are this project's style.
    private static final String YAML_RULES = "{extends: default, rules: {line-length: disable, document-start: disable,"
            + " braces: {max-spaces-inside: 1}, comments: {min-spaces-from-content: 1}}}";

    @TempDir
    private Path folder = Path.of("");

    private record LintResult(int exit, String text) {}

    private LintResult run(String linter, List<String> arguments) throws Exception {
        Path program = Path.of("/usr/bin", linter);
        assumeThat(Files.isExecutable(program)).as("there is no " + linter).isTrue();
        Process process = new ProcessBuilder(Stream.concat(Stream.of(program.toString()), arguments.stream())
                        .toList())
                .directory(REPOSITORY.toFile())
                .redirectErrorStream(true)
                .start();
        String text = new String(process.getInputStream().readAllBytes(), UTF_8);
        return new LintResult(process.waitFor(), text);
    }

    @Test
    void givenTheScripts_whenCheckedByShellcheck_thenItHasNothingToSay() throws Exception {
        LintResult lintResult = run(
                "shellcheck",
                List.of(
                        "--external-sources",
                        "kvcache",
                        "mvnw",
                        "deploy/entry",
                        ".ci/run",
                        ".mvn/find-jdk.sh",
                        ".mvn/java-flags.sh",
                        ".mvn/gpu-kit.sh",
                        ".mvn/image.sh",
                        ".mvn/release.sh",
                        "bench/figures"));

        assertThat(lintResult.text()).isEmpty();
        assertThat(lintResult.exit()).isZero();
    }

    @Test
    void givenYamlFiles_whenCheckedByYamllint_thenItHasNothingToSay() throws Exception {
        LintResult lintResult = run("yamllint", List.of("--strict", "-d", YAML_RULES, "deploy"));

        assertThat(lintResult.text()).isEmpty();
        assertThat(lintResult.exit()).isZero();
    }

    @Test
    void givenTheUnit_whenVerifiedBySystemd_thenItUnderstandsEveryLine() throws Exception {
        Path unit = folder.resolve("kvcache.service");
        Files.writeString(unit, unitThatStarts("/bin/true"));

        // Of units that this machine lacks, and of itself in a container, it may say what it likes.
        assertThat(run("systemd-analyze", List.of("verify", unit.toString()))
                        .text()
                        .lines())
                .noneMatch(line -> line.contains("kvcache"));
    }

    /// What is not installed here would be all that it speaks of.
    private static String unitThatStarts(String program) throws IOException {
        String unit = Files.readString(REPOSITORY.resolve("deploy/kvcache.service"));
        assertThat(unit).contains("ExecStart=/opt/kvcache/kvcache serve ");
        return unit.replace("ExecStart=/opt/kvcache/kvcache serve ", "ExecStart=" + program + " serve ");
    }
}
