package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// All that the kit for machines with a GPU runs, in a process that finds the stand-in for NVIDIA's
/// driver, which the tests of gpu-bridge build: every copy and every kernel, and the same beside a
/// busy process.
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
final class GpuKitOnFakeCudaTest {

    private static final Path STAND_IN = Path.of("..", "gpu-bridge", "target", "stand-in");
    private static final long MAX_SECONDS = 300;
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir
    private Path folder;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    GpuKitOnFakeCudaTest() {}

    @BeforeAll
    static void builtBefore() {
        boolean there = Files.exists(STAND_IN.resolve("libcuda.so.1"));
        assertThat(there || System.getenv("CI") == null)
                .as("the tests of gpu-bridge, which run before, leave %s", STAND_IN)
                .isTrue();
        assumeThat(there).as("the stand-in that the tests of gpu-bridge build").isTrue();
    }

    private record ProcessOutput(int exitCode, String text) {}

    private Process start(String... options) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-cp",
                System.getProperty("java.class.path"),
                GpuKit.class.getName()));
        command.addAll(List.of(options));
        ProcessBuilder process = new ProcessBuilder(command).redirectErrorStream(true);
        process.environment().put("LD_LIBRARY_PATH", STAND_IN.toRealPath().toString());
        return process.start();
    }

    private ProcessOutput run(String... options) throws IOException, InterruptedException {
        Process process = start(options);
        try (BufferedReader said = process.inputReader()) {
            String text = String.join("\n", said.lines().toList());
            assertThat(process.waitFor(MAX_SECONDS, TimeUnit.SECONDS)).isTrue();
            return new ProcessOutput(process.exitValue(), text);
        } finally {
            process.destroyForcibly();
        }
    }

    /// By one measurement, and beside a process that turns values all the time.
    @Test
    @Tag("nightly")
    void givenABusyProcess_whenComparedOnce_thenEveryWayHasARowAndALineAndNoneMeansAnything() throws Exception {
        Process busy = start("busy");
        try (BufferedReader said = busy.inputReader()) {
            assertThat(said.readLine()).isEqualTo("busy");
            Path file = folder.resolve("bench.jsonl");
            ProcessOutput bench = run("--quick", "--strict", "--lines", file.toString());
            assertThat(bench.exitCode()).as(bench.text).isZero();
            assertThat(bench.text)
                    .contains("the figures mean nothing", "2 MiB each", "given 4 MiB and 3 rounds at most");
            List<JsonNode> lines =
                    Files.readAllLines(file).stream().map(JSON::readTree).toList();
            assertThat(lines)
                    .extracting(line -> line.path("name").asString())
                    .containsExactly(
                            "onboard",
                            "offload",
                            "both at once",
                            "into pages",
                            "out of pages",
                            "into small pages",
                            "out of small pages",
                            "device to pages",
                            "pages to device",
                            "device to small pages",
                            "small pages to device",
                            "bf16 to fp8",
                            "fp8 to bf16",
                            "rope shift",
                            "crc32c",
                            "copied pieces",
                            "relayout",
                            "pages to fp8",
                            "fp8, turned",
                            "pages to int4",
                            "int4 to pages",
                            "attention")
                    .allSatisfy(name -> assertThat(bench.text).contains("\n" + name + " "));
            assertThat(lines).allSatisfy(line -> {
                assertThat(line.path("gpu").asBoolean(true)).isFalse();
                assertThat(line.path("registered").asBoolean()).isTrue();
                assertThat(line.path("gigabytes").asDouble()).isPositive();
            });
            assertThat(busy.isAlive()).as("busy all the time").isTrue();
        } finally {
            busy.destroyForcibly();
        }
    }

    @Test
    void givenSizes_whenCompared_thenTheKernelHasARowToo() throws Exception {
        ProcessOutput sizes = run("--quick", "--sizes");
        assertThat(sizes.exitCode()).as(sizes.text).isZero();
        assertThat(sizes.text).contains("mean nothing", "to device, loop", "within, coalesced", "within, kernel");
    }

    @Test
    void givenAStoreOverTheDriver_whenShown_thenEveryByteCameBackAndItIsNoGpu() throws Exception {
        ProcessOutput demo = run("demo");
        assertThat(demo.exitCode()).as(demo.text).isZero();
        assertThat(demo.text).contains("No GPU is used", "CPU stand-in", "every byte: passed");
    }

    @Test
    void givenDevices_whenProbed_thenEachHasALineWithTwoFigures() throws Exception {
        ProcessOutput probe = run("probe");
        assertThat(probe.text).containsPattern("CPU stand-in.*kernels load.*GB/s to it.*GB/s back");
    }
}
