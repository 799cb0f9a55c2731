package io.kvcache.bench.launcher;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.contract.TestJvm;
import io.kvcache.server.cli.Kvcache;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// `./kvcache jar --gpu`, over the stand-in for NVIDIA's driver and without a driver.
///
/// Only in a run of `./kvcache test`: it makes the jar of what that run has built.
@Tag("slow")
@Timeout(300)
final class GpuJarTest {

    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();
    private static final Path BRIDGE = REPOSITORY.resolve("gpu-bridge/target");
    private static final String INTERPRETER = System.getenv().getOrDefault("KVCACHE_TEST_PYTHON", "python3");
    private static final Pattern SERVES = Pattern.compile("KVCache \\S+ serves at 127\\.0\\.0\\.1:(\\d+).*");

    @TempDir
    private static Path folder = Path.of("");

    private static Path jar = Path.of("");

    private record ProcessResult(int exit, String text) {}

    @BeforeAll
    static void make() throws Exception {
        assumeThat(System.getenv("KVCACHE_BUILDING"))
                .as("a run of ./kvcache test")
                .isNotNull();
        jar = folder.resolve("kvcache.jar");
        ProcessBuilder builder =
                new ProcessBuilder(REPOSITORY.resolve("kvcache").toString(), "jar", "--gpu", jar.toString());
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        ProcessResult made = run(builder);
        assertThat(made.exit()).as(made.text()).isZero();
    }

    private static ProcessResult run(ProcessBuilder builder) throws Exception {
        Process process = builder.redirectErrorStream(true).start();
        String text = new String(process.getInputStream().readAllBytes(), UTF_8);
        return new ProcessResult(process.waitFor(), text);
    }

    /// A command of the jar, in an empty folder.
    private static ProcessBuilder command(String... arguments) throws IOException {
        return java(Stream.concat(Stream.of("-jar", jar.toString()), Stream.of(arguments))
                .toList());
    }

    private static ProcessBuilder java(List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(TestJvm.program()));
        command.addAll(TestJvm.FLAGS);
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(Files.createTempDirectory(folder, "empty").toFile());
        builder.environment().remove("LD_LIBRARY_PATH");
        return builder;
    }

    private static Path standIn() throws IOException {
        Path standIn = BRIDGE.resolve("stand-in");
        assumeThat(Files.exists(standIn.resolve("libcuda.so.1")) || System.getenv("CI") != null)
                .as("the stand-in that the tests of gpu-bridge build")
                .isTrue();
        return standIn.toRealPath();
    }

    @Test
    void givenTheJarForGpus_whenListed_thenItIsThePlainOneWithWhatUsesThem() throws Exception {
        Map<String, Long> plain = checksums(REPOSITORY.resolve("server/target/kvcache.jar"));
        Map<String, Long> all = checksums(jar);
        assertThat(all).containsAllEntriesOf(plain);
        List<String> added = new ArrayList<>();
        for (Path part : List.of(BRIDGE.resolve("classes"), BRIDGE.resolve("jcuda"))) {
            try (Stream<Path> files = Files.walk(part).filter(Files::isRegularFile)) {
                files.forEach(file -> added.add(part.relativize(file).toString()));
            }
        }
        assertThat(added)
                .as("of which none replaces a file of the plain one")
                .contains(
                        "jcuda/driver/JCudaDriver.class",
                        "META-INF/licenses/jcuda.txt",
                        "META-INF/services/io.kvcache.core.DeviceSupport")
                .doesNotContainAnyElementsOf(plain.keySet());
        assertThat(all.keySet()).hasSize(plain.size() + added.size()).containsAll(added);
        assertThat(added)
                .filteredOn(name -> name.endsWith(".so"))
                .singleElement()
                .asString()
                .startsWith("lib/libJCudaDriver-");
    }

    /// Files by name; directories have none.
    private static Map<String, Long> checksums(Path file) throws IOException {
        try (JarFile open = new JarFile(file.toFile())) {
            return open.stream()
                    .filter(entry -> !entry.isDirectory())
                    .collect(Collectors.toMap(JarEntry::getName, JarEntry::getCrc));
        }
    }

    @Test
    void givenADriver_whenTheJarServes_thenAnEngineStoresAndLoadsBlocksOnTheGpu() throws Exception {
        Path standIn = standIn();
        assumeThat(hasPython()).as("python3 of 3.9 or later").isTrue();
        ProcessBuilder doctor = command("doctor");
        doctor.environment().put("LD_LIBRARY_PATH", standIn.toString());
        assertThat(run(doctor).text()).containsPattern("GPU driver +CPU stand-in, CUDA ");

        String test = "tests.test_gpu.GpuTest.test_blocks_are_found_by_tokens_on_both_ways";
        ProcessBuilder engine = new ProcessBuilder(INTERPRETER, "-m", "unittest", "-v", test)
                .directory(REPOSITORY.resolve("python").toFile());
        engine.environment()
                .put(
                        "KVCACHE_TEST_SERVER",
                        "'%s' %s -jar '%s'".formatted(TestJvm.program(), String.join(" ", TestJvm.FLAGS), jar));
        engine.environment()
                .put("KVCACHE_TEST_CUDA", standIn.resolve("libcuda.so.1").toString());
        engine.environment().put("LD_LIBRARY_PATH", standIn.toString());
        engine.environment().put("PYTHONDONTWRITEBYTECODE", "1");
        assertThat(run(engine).text()).contains("Ran 1 test in ").endsWith("\nOK\n");
    }

    private static boolean hasPython() throws InterruptedException {
        try {
            String script = "import sys; sys.exit(sys.version_info < (3, 9))";
            return new ProcessBuilder(INTERPRETER, "-c", script).start().waitFor() == 0;
        } catch (IOException none) {
            return false;
        }
    }

    @Test
    void givenATemporaryFolderWithoutExecution_whenTheJarIsToServeAGpu_thenItSaysSoInOneLine() throws Exception {
        String mount = "mount -t tmpfs -o noexec none \"$1\"; shift; exec \"$@\"";
        Path temporary = Files.createDirectory(folder.resolve("temporary"));
        ProcessBuilder serve = command("serve", "--port", "0", "--gpu", "0:64MiB");
        serve.command().add(1, "-Djava.io.tmpdir=" + temporary);
        serve.command().addAll(0, List.of("unshare", "-m", "bash", "-ec", mount, "bash", temporary.toString()));
        serve.environment().put("LD_LIBRARY_PATH", standIn().toString());
        ProcessResult refused = run(serve);
        assumeThat(refused.text()).as("namespaces of mounts, as root").startsWith("kvcache: ");

        assertThat(refused.exit()).isEqualTo(1);
        assertThat(refused.text())
                .startsWith("kvcache: gpu.0: load JCuda: NO_DRIVER")
                .contains("failed to map segment")
                .doesNotContain("LibUtils");
    }

    /// Where there is a driver, it has no such GPU, and the reason is another one.
    @Test
    void givenNoSuchGpu_whenTheJarIsToServeIt_thenItSaysWhatTheLauncherSays() throws Exception {
        String[] serve = {"serve", "--port", "0", "--host-bytes", "64MiB", "--gpu", "63:64MiB"};
        List<String> sameOfClassPath = new ArrayList<>(List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                Kvcache.class.getName()));
        sameOfClassPath.addAll(List.of(serve));

        ProcessResult refused = run(command(serve));

        assertThat(refused.exit()).isEqualTo(1);
        assertThat(refused.text())
                .startsWith("kvcache: gpu.0: ")
                .doesNotContain("has no module for GPUs")
                .isEqualTo(run(java(sameOfClassPath)).text());
    }

    @Test
    void givenNoGpuIsAskedFor_whenTheJarServes_thenItServesAsThePlainOne() throws Exception {
        Process server = command("serve", "--port", "0", "--host-bytes", "64MiB")
                .redirectError(folder.resolve("errors").toFile())
                .start();
        try (BufferedReader said = server.inputReader(UTF_8)) {
            Matcher serves = SERVES.matcher(String.valueOf(said.readLine()));
            assertThat(serves.matches()).isTrue();
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), Integer.parseInt(serves.group(1)))) {
                socket.getOutputStream().write("SET key value\r\nGET key\r\n".getBytes(UTF_8));
                assertThat(new String(socket.getInputStream().readNBytes(16), UTF_8))
                        .isEqualTo("+OK\r\n$5\r\nvalue\r\n");
            }
            assertThat(server.toHandle().destroy()).as("SIGTERM").isTrue();
            assertThat(server.waitFor()).isZero();
            assertThat(said.readAllAsString()).doesNotContain("GPU").endsWith("KVCache stopped\n");
        } finally {
            server.destroyForcibly();
        }
        assertThat(folder.resolve("errors")).content().doesNotContain("WARNING", "SEVERE", "Exception");
    }
}
