package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.doctor.SystemCheck.CheckResult;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@EnabledOnOs(OS.LINUX)
final class DoctorCommandTest {

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenADirectory_whenAskedForJson_thenItSaysWhatThereIsAndHowFastItIs() throws IOException {
        CliRunner.CliResult cliResult = CliRunner.run("doctor", "--json", folder.toString());

        assertThat(cliResult.exitCode()).as(cliResult.err()).isZero();
        JsonNode facts = JsonMapper.builder().build().readTree(cliResult.out());
        assertThat(facts.path("io_uring").asString()).containsPattern("^(allowed|refused, )");
        assertThat(facts.path("huge pages").asString()).contains("set apart");
        assertThat(facts.path("reads " + folder).asString()).endsWith(" GB/s");
        assertThat(facts.path("writes " + folder).asString()).endsWith(" GB/s");
        assertThat(facts.propertyNames())
                .contains("kernel", "vm.max_map_count", "memlock", "open files", "somaxconn", "THP enabled", "fio")
                .contains("GPU driver", "advice", "verdict");
        assertThat(facts.path("advice").isObject()).isTrue();
        assertThat(facts.path("vm.max_map_count").asString())
                .isEqualTo(Files.readAllLines(Path.of("/proc/sys/vm/max_map_count"))
                        .getFirst());
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void givenNothing_whenAsked_thenEachFactIsALineAndAdviceHangsBelowIt() {
        CliRunner.CliResult cliResult = CliRunner.run("doctor");

        assertThat(cliResult.exitCode()).isZero();
        assertThat(cliResult.out().lines())
                .allSatisfy(line -> assertThat(line).matches("\\S.{17,} \\S.*| {19}\\S.*"))
                .last()
                .asString()
                .matches("verdict +ready to serve.*| {19}.*");
        assertThat(cliResult.out())
                .contains("kernel ", "io_uring ", "verdict ")
                .doesNotContain("GB/s" + System.lineSeparator() + "reads");
    }

    @Test
    void givenAdvice_whenTheVerdictIsSaid_thenItNamesTheChecks() {
        CheckResult good = new CheckResult("cores", "2", "");
        CheckResult one = new CheckResult("memlock", "64 KiB", "ulimit -l unlimited");
        CheckResult two = new CheckResult("somaxconn", "128", "sysctl");

        assertThat(DoctorCommand.verdict(List.of(good))).isEqualTo("ready to serve, nothing to do");
        assertThat(DoctorCommand.verdict(List.of(good, one)))
                .isEqualTo("ready to serve; one check has advice above: memlock");
        assertThat(DoctorCommand.verdict(List.of(one, good, two)))
                .endsWith("2 checks have advice above: memlock, somaxconn");
    }

    @Test
    void givenADirectoryThatCannotBeWritten_whenAsked_thenTheVerdictIsNotReady() {
        CliRunner.CliResult cliResult = CliRunner.run("doctor", "/proc");

        assertThat(cliResult.exitCode()).isEqualTo(1);
        assertThat(cliResult.out()).contains("not measured: ", "not ready: disk /proc cannot be used, see above");
    }

    @Test
    void givenNoSuchDirectory_whenAsked_thenItIsNamed() {
        CliRunner.CliResult cliResult =
                CliRunner.run("doctor", folder.resolve("missing").toString());

        assertThat(cliResult.exitCode()).isEqualTo(2);
        assertThat(cliResult.err()).contains(folder.resolve("missing").toString(), "an existing directory");
    }
}
