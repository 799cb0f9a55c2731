package io.kvcache.gpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What is called without JCuda is called as NVIDIA's own header declares it. The stand-in alone cannot
/// show that: it was written by who wrote the calls. Skipped where nvcc does not compile with that header.
final class DriverHeaderTest {

    private static final Path CHECKS = Path.of("src", "test", "native", "abi");

    /// Its header declares both kinds of batches; another one may not have all functions.
    private static final String OF_CUDA_13 = """
            #include <cuda.h>
            #include <type_traits>
            static_assert(CUDA_VERSION == 13000);
            int main() { return 0; }
            """;

    @TempDir
    private Path folder;

    /// A letter for each argument, see `calls.h`.
    private static String kind(MemoryLayout argument) {
        return switch (argument) {
            case AddressLayout _ -> "'p'";
            case GroupLayout _ -> "'t'";
            default -> argument.byteSize() == Long.BYTES ? "'l'" : "'i'";
        };
    }

    private static String line(Map.Entry<String, FunctionDescriptor> function) {
        String kinds = function.getValue().argumentLayouts().stream()
                .map(DriverHeaderTest::kind)
                .collect(Collectors.joining(", "));
        return "CALLED(" + function.getKey() + ", " + kinds + ");";
    }

    private static Map<String, FunctionDescriptor> everyCall() {
        FakeCuda fakeCuda = FakeCuda.reset();
        assumeThat(fakeCuda.canHold()).as("a driver that has every function").isTrue();
        try (CudaDriver driver = (CudaDriver) fakeCuda.open()) {
            assertThat(driver.info().name()).isNotBlank();
            driver.virtualMemory();
            driver.ipc();
            return new TreeMap<>(driver.library().bound());
        }
    }

    @Test
    void givenEveryCallWithoutJcuda_whenComparedWithTheHeader_thenItsArgumentsAreThose() throws Exception {
        Map<String, FunctionDescriptor> calls = everyCall();
        assertThat(calls)
                .hasSizeGreaterThan(25)
                .containsKeys(CudaMemcpyBatch.CUDA_13_FUNCTION, CudaMemcpyBatch.CUDA_12_8_FUNCTION);
        String lines = calls.entrySet().stream().map(DriverHeaderTest::line).collect(Collectors.joining("\n"));
        assertThat(compiled("#include \"calls.h\"\n" + lines + "\n")).isEmpty();
    }

    @Test
    void givenACallWithAnotherArgument_whenComparedWithTheHeader_thenItIsNamed() throws Exception {
        assertThat(compiled("#include \"calls.h\"\nCALLED(cuMemMap, 'l', 'l', 'i', 'l', 'l');\n"))
                .contains("cuMemMap");
    }

    @Test
    void givenStructuresAndNumbers_whenComparedWithTheHeader_thenTheyAreThose() throws Exception {
        assertThat(compiled("#include \"numbers.cpp\"\n")).isEmpty();
    }

    /// What the compiler has against it; nothing when it is right.
    private String compiled(String text) throws IOException, InterruptedException {
        assumeThat(run(OF_CUDA_13))
                .as("skipped, as nvcc and its cuda.h are not those of CUDA 13.0")
                .isEmpty();
        return run(text);
    }

    private String run(String text) throws IOException, InterruptedException {
        Path source = Files.writeString(folder.resolve("checked.cpp"), text);
        Path log = folder.resolve("log");
        List<String> command = List.of(
                "nvcc",
                "-std=c++17",
                "-I",
                CHECKS.toAbsolutePath().toString(),
                "-c",
                source.toString(),
                "-o",
                folder.resolve("out").toString());
        Process process;
        try {
            process = new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectOutput(log.toFile())
                    .start();
        } catch (IOException missing) {
            return "no nvcc: " + missing.getMessage();
        }
        boolean ended = process.waitFor(600, TimeUnit.SECONDS);
        process.destroyForcibly();
        String said = Files.readString(log);
        assertThat(ended).as(said).isTrue();
        return process.exitValue() == 0 ? "" : "nvcc ends with " + process.exitValue() + ": " + said;
    }
}
