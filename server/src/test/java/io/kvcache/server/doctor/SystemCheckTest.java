package io.kvcache.server.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.cluster.ClusterPreflight.HostNameCheck;
import io.kvcache.server.doctor.SystemCheck.CheckResult;
import io.kvcache.tiers.memory.SharedMemorySource.AbandonedFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
@Timeout(120)
final class SystemCheckTest {

    @TempDir
    private Path folder = Path.of("");

    private String program(String script) throws IOException {
        Path file = folder.resolve("nvidia-smi");
        Files.writeString(file, "#!/bin/sh\n" + script + "\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
        return file.toString();
    }

    @Test
    void givenAProgramThatHangsAsItsChildDoes_whenAsked_thenTheFactSaysSoWithAdvice() throws IOException {
        String hanging = program("sleep 3600 &\nsleep 3600");

        CheckResult checkResult = SystemCheck.checkCommand("GPU", Duration.ofSeconds(1), "read dmesg", hanging, "-L");

        assertThat(checkResult).isEqualTo(new CheckResult("GPU", hanging + " did not end within 1 s", "read dmesg"));
    }

    @Test
    void givenAProgram_whenAsked_thenTheFactIsItsFirstLine() throws IOException {
        String sound = program("echo 'GPU 0: one'\necho more");

        assertThat(SystemCheck.checkCommand("GPU", Duration.ofSeconds(60), "read dmesg", sound, "-L"))
                .isEqualTo(CheckResult.of("GPU", "GPU 0: one"));
        assertThat(SystemCheck.checkCommand("GPU", Duration.ofSeconds(60), "read dmesg", "/nowhere/nvidia-smi"))
                .isEqualTo(CheckResult.of("GPU", "none"));
    }

    @Test
    void givenNoUcx_whenChecked_thenOnlyAMachineWithAnRdmaDeviceIsAdvisedIt() throws IOException {
        assertThat(SystemCheck.hasRdma(folder.resolve("infiniband"))).isFalse();
        assertThat(SystemCheck.hasRdma(Files.createDirectory(folder.resolve("infiniband"))))
                .isFalse();
        Files.createDirectory(folder.resolve("infiniband/mlx5_0"));
        assertThat(SystemCheck.hasRdma(folder.resolve("infiniband"))).isTrue();

        assertThat(SystemCheck.checkUcx(false, false)).isEqualTo(CheckResult.of("UCX", "none, and no RDMA device"));
        assertThat(SystemCheck.checkUcx(true, true)).isEqualTo(CheckResult.of("UCX", "installed"));
        assertThat(SystemCheck.checkUcx(false, true).advice()).contains("libucx0");
    }

    @Test
    void givenHostNames_whenChecked_thenOnesThatOthersCannotReachGetAdvice() {
        assertThat(SystemCheck.checkHostName(new HostNameCheck("kv-0", "10.0.0.5", "")))
                .isEqualTo(CheckResult.of("host name", "kv-0 (10.0.0.5)"));
        assertThat(SystemCheck.checkHostName(new HostNameCheck("kv-0", "", "is not known here")))
                .satisfies(check -> assertThat(check.value()).isEqualTo("kv-0"))
                .satisfies(check -> assertThat(check.advice()).contains("cluster.advertise", "is not known here"));
    }

    @Test
    void givenFoldersOfKilledServers_whenChecked_thenTheyAreListedWithAdvice() {
        AbandonedFolder left = new AbandonedFolder(Path.of("/dev/shm/kvcache-me-7420"), 64 << 20, List.of());
        AbandonedFolder mapped = new AbandonedFolder(left.folder(), left.bytes(), List.of(7L, 12L));
        assertThat(SystemCheck.checkAbandonedMemory(List.of(left, left)))
                .satisfies(check -> assertThat(check.value())
                        .isEqualTo("/dev/shm/kvcache-me-7420: 64.0 MiB (67108864 bytes), "
                                + "/dev/shm/kvcache-me-7420: 64.0 MiB (67108864 bytes)"))
                .satisfies(check -> assertThat(check.advice()).contains("start a server as this user"));
        assertThat(SystemCheck.checkAbandonedMemory(List.of(mapped)))
                .satisfies(check -> assertThat(check.value())
                        .isEqualTo("/dev/shm/kvcache-me-7420: 64.0 MiB (67108864 bytes), mapped by PID 7 and 12"))
                .satisfies(check -> assertThat(check.advice()).startsWith("end the clients that map it"));
        assertThat(SystemCheck.checkAbandonedMemory(List.of()))
                .isEqualTo(CheckResult.of("left in /dev/shm", "nothing"));
    }
}
