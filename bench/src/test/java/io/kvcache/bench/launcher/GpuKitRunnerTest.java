package io.kvcache.bench.launcher;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// What `run.sh` of the kit makes of steps that fail, over a JVM that is none: the figures of all
/// others are kept, and lie in one file.
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
final class GpuKitRunnerTest {

    /// Says what it was asked for, writes a line where it is told to, and ends as the environment
    /// says.
    private static final String JAVA = """
            #!/usr/bin/env bash
            class= lines= options=
            while [ $# -gt 0 ]; do
                case $1 in
                    io.kvcache.*) class=${1##*.} ;;
                    --lines) lines=$2; shift ;;
                    demo | busy | probe | --sizes) options+=$1 ;;
                esac
                shift
            done
            case $class$options in
                GpuSmokeChecks) echo 'device: pretended'; exit "${FIRST:-0}" ;;
                GpuKitbusy) echo busy; exec sleep 300 ;;
                GpuKitdemo) echo 'some bytes'; exit "${DEMO:-0}" ;;
                GpuKitTestRunner)
                    echo '5 passed'
                    [ -z "${CRASH:-}" ] || kill -SEGV $$
                    [ -z "${HANG:-}" ] || exec sleep 300 ;;
                GpuKit*) echo "figure of '$options'"; [ -z "$lines" ] || echo "{\\"line\\":\\"of '$options'\\"}" >"$lines" ;;
            esac
            """;

    @TempDir
    private Path folder;

    private Path kit = Path.of("");
    private Path results = Path.of("");

    private record ScriptResult(int exit, String text, String report) {}

    @SuppressWarnings("NullAway.Init") // given by JUnit
    GpuKitRunnerTest() {}

    @BeforeEach
    void pack() throws Exception {
        kit = Files.createDirectories(folder.resolve("kit"));
        results = folder.resolve("results");
        Path java = Files.createDirectories(folder.resolve("jre/bin")).resolve("java");
        assertThat(Files.writeString(java, JAVA).toFile().setExecutable(true)).isTrue();
        Files.writeString(Files.createDirectories(kit.resolve("python/tests")).resolve("test_gpu.py"), """
                import os, unittest
                class Test(unittest.TestCase):
                    def test(self):
                        print("served by", os.environ["KVCACHE_TEST_SERVER"], "on", os.environ["KVCACHE_TEST_CUDA"])
                """);
        int packed = new ProcessBuilder("tar", "-C", folder.toString(), "-cJf", kit.resolve("jre.tar.xz") + "", "jre")
                .start()
                .waitFor();
        assumeThat(packed).as("tar with xz").isZero();
        String script = Path.of("..", ".mvn", "gpu-kit.sh").toRealPath().toString();
        int written = new ProcessBuilder("bash", "-c", "source '" + script + "'; gpu_kit_runner")
                .redirectOutput(kit.resolve("run.sh").toFile())
                .start()
                .waitFor();
        assertThat(written).isZero();
    }

    private Process start(Map<String, String> environment, String... steps) throws IOException {
        List<String> command = new ArrayList<>(List.of("bash", kit.resolve("run.sh") + "", results + ""));
        command.addAll(List.of(steps));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        return builder.start();
    }

    private ScriptResult run(Map<String, String> environment, String... steps) throws Exception {
        Process process = start(environment, steps);
        String text = new String(process.getInputStream().readAllBytes(), UTF_8);
        int exit = process.waitFor();
        return new ScriptResult(exit, text, Files.readString(results.resolve("report.txt")));
    }

    @Test
    void givenStepsThatFailAndCrash_whenAllAreRun_thenTheOthersAreThereAndOneFileHasEveryFigure() throws Exception {
        ScriptResult scriptResult = run(Map.of("DEMO", "7", "CRASH", "1"));
        assertThat(scriptResult.exit).as(scriptResult.text).isEqualTo(1);
        assertThat(scriptResult.report)
                .contains("first checks: done in ", "a store over the GPU: FAILED with 7, see demo.txt")
                .contains(
                        "benchmark: done in ", "copies by size: done in ", "benchmark beside a busy process: done in ")
                .containsPattern("tests: FAILED with 1[0-9]+, see tests.txt")
                .contains("device: pretended", "figure of 'probe'", "some bytes", "5 passed")
                .contains("===== bench.txt\nfigure of ''", "===== bench.jsonl\n{\"line\":\"of ''\"}")
                .contains("===== sizes.txt\nfigure of '--sizes'", "===== sizes.jsonl\n{\"line\":\"of '--sizes'\"}")
                .contains("===== beside.txt\n", "\nbusy\nfigure of ''", "===== beside.jsonl\n{")
                .containsPattern("===== serve.txt\n(?s:.*)served by .*java .*Kvcache on libcuda.so.1");
    }

    @Test
    void givenNoDevice_whenRun_thenNothingElseIsTriedAndTheReportSaysWhy() throws Exception {
        ScriptResult scriptResult = run(Map.of("FIRST", "3"));
        assertThat(scriptResult.exit).isEqualTo(2);
        assertThat(scriptResult.text).contains("no GPU here that can be used");
        assertThat(scriptResult.report).contains("device: pretended").doesNotContain("figure of", "benchmark");
    }

    /// As when a driver ends the process at one of the first looks: that there is a device is known
    /// by then.
    @Test
    void givenFirstChecksThatCrash_whenRun_thenTheOtherStepsAreDone() throws Exception {
        ScriptResult scriptResult = run(Map.of("FIRST", "134"), "bench");
        assertThat(scriptResult.exit).isEqualTo(1);
        assertThat(scriptResult.report)
                .contains("first checks: FAILED with 134", "benchmark: done in ", "figure of ''");
    }

    /// A machine may be lent for a few minutes at a time.
    @Test
    void givenSomeStepsAndThenOthers_whenRunIntoOneFolder_thenTheReportHasThemAll() throws Exception {
        run(Map.of(), "bench");
        ScriptResult second = run(Map.of(), "demo", "tests");
        assertThat(second.exit).as(second.text).isZero();
        assertThat(second.report)
                .contains("benchmark: done in ", "tests: done in ", "figure of ''", "some bytes", "5 passed");
    }

    @Test
    void givenAStepThatHangs_whenItsTimeIsOver_thenItIsNotDoneAndItsWordsAreKept() throws Exception {
        ScriptResult scriptResult = run(Map.of("HANG", "1", "KIT_SECONDS", "3"), "tests");
        assertThat(scriptResult.exit).isEqualTo(1);
        assertThat(scriptResult.report)
                .containsPattern("tests: NOT DONE, cut off after [0-9]+ s, see tests.txt")
                .contains("5 passed");
    }

    /// As when the machine is taken back.
    @Test
    void givenAStepUnderWay_whenTheRunIsStopped_thenTheReportSaysSoBesideWhatWasDone() throws Exception {
        Process process = start(Map.of("HANG", "1"), "bench", "tests");
        try (BufferedReader said = process.inputReader()) {
            String line = said.readLine();
            while (line != null && !line.equals("5 passed")) {
                line = said.readLine();
            }
            while (!Files.readString(results.resolve("tests.txt")).contains("5 passed")) {
                Thread.sleep(10); // what is shown is written right after
            }
            process.destroy();
            assertThat(process.waitFor()).isEqualTo(143);
        }
        assertThat(Files.readString(results.resolve("report.txt")))
                .contains("benchmark: done in ", "figure of ''", "tests: CUT OFF, see tests.txt", "5 passed");
    }
}
