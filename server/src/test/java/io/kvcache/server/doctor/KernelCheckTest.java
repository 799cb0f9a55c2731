package io.kvcache.server.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.doctor.SystemCheck.CheckResult;
import io.kvcache.server.doctor.SystemCheck.KernelCheck;
import io.kvcache.server.doctor.SystemCheck.KernelCheck.IoUringProbe;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class KernelCheckTest {

    private static final String GOOD = "6.1.0-amd64";

    @TempDir
    private Path root = Path.of("");

    @BeforeEach
    void describeAGoodMachine() throws IOException {
        write("proc/meminfo", """
                MemTotal:       16000000 kB
                HugePages_Total:       0
                HugePages_Free:        0
                Hugepagesize:       2048 kB
                """);
        write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size [advise] never deny force\n");
        write("proc/sys/vm/max_map_count", "65530\n");
        write("proc/sys/net/core/somaxconn", "4096\n");
        write("proc/self/limits", limits("unlimited", "65536"));
        write("proc/self/status", "Name:\tjava\nCapEff:\t0000000000000000\n");
    }

    private void write(String file, String text) throws IOException {
        Path path = root.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
    }

    private static String limits(String locked, String files) {
        return """
                Limit                     Soft Limit           Hard Limit           Units
                Max open files            %-20s 524288               files
                Max locked memory         %-20s unlimited            bytes
                """.formatted(files, locked);
    }

    private List<CheckResult> facts(String release) {
        return new KernelCheck(root, 1L << 30).run(release);
    }

    @Test
    void givenAGoodMachine_whenLookedAt_thenThereIsNothingToDo() {
        assertThat(facts(GOOD))
                .extracting(CheckResult::name)
                .containsExactly(
                        "kernel",
                        "huge pages",
                        "THP enabled",
                        "THP shmem_enabled",
                        "vm.max_map_count",
                        "memlock",
                        "open files",
                        "somaxconn");
        assertThat(facts(GOOD)).allSatisfy(checkResult -> {
            assertThat(checkResult.advice()).as(checkResult.name()).isEmpty();
            assertThat(checkResult.value()).as(checkResult.name()).isNotEqualTo(CheckResult.UNKNOWN);
        });
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "proc/sys/vm/max_map_count | 1024 | vm.max_map_count | sysctl -w vm.max_map_count=65530",
                "proc/sys/net/core/somaxconn | 128 | somaxconn | sysctl -w net.core.somaxconn=1024",
                "sys/kernel/mm/transparent_hugepage/enabled | always madvise [never] | THP enabled | echo madvise >",
                "sys/kernel/mm/transparent_hugepage/shmem_enabled | advise [never] | THP shmem_enabled | echo advise >"
            })
    void givenABadSetting_whenLookedAt_thenThatFactAloneSaysWhatToDo(
            String file, String text, String name, String advice) throws IOException {
        write(file, text);

        requireAdvice(facts(GOOD), name, advice);
    }

    private static void requireAdvice(List<CheckResult> facts, String name, String advice) {
        assertThat(facts)
                .filteredOn(checkResult -> !checkResult.advice().isEmpty())
                .singleElement()
                .satisfies(checkResult -> {
                    assertThat(checkResult.name()).isEqualTo(name);
                    assertThat(checkResult.advice()).contains(advice).doesNotContain("\n");
                });
    }

    @Test
    void givenIdleHugePages_whenLookedAt_thenTheirSizeIsNamed() throws IOException {
        write("proc/meminfo", "HugePages_Total:    1024\nHugePages_Free:     512\nHugepagesize:       2048 kB\n");

        requireAdvice(facts(GOOD), "huge pages", "1.0 GiB lie idle");
    }

    @Test
    void givenLowLimits_whenLookedAt_thenEachSaysHowToRaiseIt() throws IOException {
        write("proc/self/limits", limits("8388608", "65536"));
        requireAdvice(facts(GOOD), "memlock", "ulimit -l unlimited");

        write("proc/self/limits", limits("unlimited", "1024"));
        requireAdvice(facts(GOOD), "open files", "ulimit -n 65536");
    }

    @Test
    void givenTheCapabilityToLock_whenTheLimitIsLow_thenItDoesNotBind() throws IOException {
        write("proc/self/limits", limits("8388608", "65536"));
        write("proc/self/status", "CapEff:\t0000000000004000\n");

        assertThat(facts(GOOD)).contains(CheckResult.of("memlock", "8192 KiB, does not bind: CAP_IPC_LOCK"));
    }

    @ParameterizedTest
    @CsvSource({"5.10.0-23,too old", "5.15.0,interrupts", "6.0,interrupts", "4.18.0-el8,too old"})
    void givenAnOldKernel_whenLookedAt_thenItSaysWhatItLacks(String release, String lack) {
        requireAdvice(facts(release), "kernel", lack);
    }

    @Test
    void givenNoSuchFiles_whenLookedAt_thenNothingFails() {
        assertThat(new KernelCheck(root.resolve("nowhere"), 1L << 30).run("unheard of"))
                .filteredOn(checkResult -> !checkResult.name().equals("kernel"))
                .allSatisfy(checkResult -> {
                    assertThat(checkResult.value()).isEqualTo(CheckResult.UNKNOWN);
                    assertThat(checkResult.advice()).isEmpty();
                });
    }

    @ParameterizedTest
    @CsvSource({"-1,EPERM,seccomp", "-12,ENOMEM,ulimit -l", "-38,ENOSYS,Linux 6.1"})
    void givenARefusedRing_whenExplained_thenTheReasonHasItsOwnAdvice(long result, String name, String advice) {
        CheckResult checkResult = IoUringProbe.check(result);

        assertThat(checkResult.value()).contains("refused, " + name, "threads");
        assertThat(checkResult.advice()).contains(advice);
    }
}
