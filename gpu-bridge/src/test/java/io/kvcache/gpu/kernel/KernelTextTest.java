package io.kvcache.gpu.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.contract.Repetitions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/// The text that is checked in is what its source gives, and assembles for the devices that there are.
/// Skipped where there is no nvcc.
final class KernelTextTest {

    private static final Path GENERATE = Path.of("src", "main", "cuda", "generate.sh");

    /// The one that made the text.
    private static final String NVCC = "release 13.0";

    /// The newest and the oldest come first: an assembler takes seconds for each.
    static final List<String> DEVICES =
            List.of("sm_120", "sm_80", "sm_90", "sm_100").subList(0, Repetitions.usualOrFull(2, 4));

    @TempDir
    private Path folder;

    @Test
    void givenNvcc_whenTheTextIsMadeAnew_thenItIsTheOneThatIsCheckedIn() throws Exception {
        Path fresh = folder.resolve("fresh.ptx");
        assumeThat(run("nvcc", "--version"))
                .as("skipped, as another nvcc may make other text of the same source")
                .contains(NVCC);
        run(GENERATE.toAbsolutePath().toString(), fresh.toString());
        assertThat(Files.readString(fresh)).isEqualTo(GpuKernels.ptxSource());
    }

    @ParameterizedTest
    @FieldSource("DEVICES")
    @Tag("slow")
    void givenTheText_whenAssembledForADevice_thenItIsTakenAndNothingIsSpilled(String device) throws Exception {
        Path text = Files.writeString(folder.resolve("kernels.ptx"), GpuKernels.ptxSource());
        String said = run(
                "ptxas",
                "-v",
                "-arch=" + device,
                text.toString(),
                "-o",
                folder.resolve("out").toString());
        assertThat(said).contains("0 bytes spill stores").doesNotContainPattern("[1-9][0-9]* bytes spill");
    }

    @Test
    void givenTheText_whenLookedAt_thenOldDriversTakeItAndItTellsNothingOfWhereItWasMade() {
        assertThat(GpuKernels.ptxSource())
                .startsWith(".version 7.0\n.target sm_80\n")
                .doesNotContain(".file", ".loc");
    }

    private String run(String... command) throws IOException, InterruptedException {
        Path log = folder.resolve("log");
        Process process;
        try {
            process = new ProcessBuilder(List.of(command))
                    .redirectErrorStream(true)
                    .redirectOutput(log.toFile())
                    .start();
        } catch (IOException missing) {
            assumeThat(false).as("skipped, as there is no " + command[0]).isTrue();
            throw missing;
        }
        boolean ended = process.waitFor(600, TimeUnit.SECONDS);
        process.destroyForcibly();
        assertThat(ended && process.exitValue() == 0).as(Files.readString(log)).isTrue();
        return Files.readString(log);
    }
}
