package io.kvcache.bench.launcher;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// `./kvcache image`, also with `--gpu`: its files as a container would have them, started as its user on a root that
/// cannot be written.
@Tag("nightly")
@Timeout(600)
class ImageTest {

    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();
    private static final Path STAND_IN = REPOSITORY.resolve("gpu-bridge/target/stand-in/libcuda.so.1");
    private static final Pattern MODULE = Pattern.compile("-> ((?:java|jdk)\\.\\S+)");
    private static final Pattern SERVES = Pattern.compile("KVCache \\S+ serves at 127\\.0\\.0\\.1:(\\d+).*");

    /// What a container runtime does, but for other namespaces than that of mounts.
    private static final String RUN = """
            set -e
            root=$1 temporary=$2; shift 2
            mount --bind "$root" "$root"
            mount -o remount,ro,bind "$root"
            mount -t proc none "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
            mount --rbind /dev "$root/dev"
            mount -t tmpfs -o "$temporary" none "$root/tmp"
            mount -t tmpfs none "$root/var/lib/kvcache"
            chown 7379:7379 "$root/tmp" "$root/var/lib/kvcache"
            exec chroot --userspec=7379:7379 "$root" "$@"
            """;

    @TempDir
    private static Path folder;

    private static UnpackedImage plain;

    /// @param root of its files
    private record UnpackedImage(JsonNode config, Path root) {

        /// Runs a command as a container would, in the image's environment.
        ///
        /// @param temporary how `/tmp` is mounted: `exec` or `noexec`
        ProcessBuilder container(String temporary, String... command) {
            List<String> all =
                    new ArrayList<>(List.of("unshare", "-m", "bash", "-c", RUN, "bash", root.toString(), temporary));
            all.addAll(List.of(command));
            ProcessBuilder builder = new ProcessBuilder(all);
            String path = builder.environment().get("PATH");
            builder.environment().clear();
            for (JsonNode variable : config.at("/config/Env")) {
                String[] parts = variable.asString().split("=", 2);
                builder.environment().put(parts[0], parts[1]);
            }
            builder.environment().put("PATH", path);
            return builder;
        }
    }

    @BeforeAll
    static void makePlain() throws Exception {
        plain = make("plain");
    }

    private static UnpackedImage make(String name, String... options) throws Exception {
        Path tar = folder.resolve(name + ".tar");
        List<String> command =
                new ArrayList<>(List.of(REPOSITORY.resolve("kvcache").toString(), "image"));
        command.addAll(List.of(options));
        command.add(tar.toString());
        output(new ProcessBuilder(command));
        Path layout = Files.createDirectory(folder.resolve(name + "-layout"));
        output(new ProcessBuilder("tar", "-xf", tar.toString(), "-C", layout.toString()));
        JsonNode index = json(layout.resolve("index.json"));
        JsonNode manifest = json(blob(layout, index.at("/manifests/0")));
        Path root = Files.createDirectory(folder.resolve(name));
        for (JsonNode layer : manifest.get("layers")) {
            String file = blob(layout, layer).toString();
            output(new ProcessBuilder("tar", "-xzpf", file, "-C", root.toString(), "--warning=no-unknown-keyword"));
        }
        Files.createDirectory(root.resolve("proc")); // as a runtime makes them
        Files.createDirectory(root.resolve("dev"));
        return new UnpackedImage(json(blob(layout, manifest.get("config"))), root);
    }

    private static JsonNode json(Path file) throws IOException {
        return JsonMapper.shared().readTree(Files.readString(file));
    }

    /// Returns the file of a descriptor, whose digest is that of its bytes.
    private static Path blob(Path layout, JsonNode descriptor) throws Exception {
        String digest = descriptor.get("digest").asString().replace("sha256:", "");
        Path file = layout.resolve("blobs/sha256").resolve(digest);
        byte[] bytes = Files.readAllBytes(file);
        assertThat(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes)))
                .isEqualTo(digest);
        assertThat(descriptor.get("size").asLong()).isEqualTo(bytes.length);
        return file;
    }

    private static String output(ProcessBuilder builder) throws Exception {
        Process process = builder.redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), UTF_8);
        assertThat(process.waitFor()).as(said).isZero();
        return said;
    }

    private static ProcessBuilder container(String... command) {
        return plain.container("exec", command);
    }

    private static void assumeNamespaces() throws Exception {
        Process mount = new ProcessBuilder("unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp").start();
        assumeThat(mount.waitFor()).as("namespaces of mounts, as root").isZero();
    }

    @Test
    void givenAnImage_whenItsConfigurationIsRead_thenItHasUserHealthCheckAndCommand() {
        assertThat(plain.config.at("/config/User").asString()).isEqualTo("7379:7379");
        assertThat(plain.config.at("/config/Healthcheck/Test").toString())
                .isEqualTo("[\"CMD\",\"/usr/local/bin/kvcache\",\"health\"]");
        assertThat(plain.config.at("/config/Entrypoint").toString()).isEqualTo("[\"/usr/local/bin/kvcache\"]");
        assertThat(plain.config.at("/config/Cmd").toString()).contains("serve", "/etc/kvcache/kvcache.yaml");
        assertThat(plain.config.at("/os").asString()).isEqualTo("linux");
        assertThat(plain.config.at("/architecture").asString())
                .isEqualTo(System.getProperty("os.arch").equals("amd64") ? "amd64" : "arm64");
    }

    @Test
    void givenAnImage_whenItsFilesAreRead_thenItHasTheServersJarAndNoShell() throws Exception {
        Path jar = folder.resolve("kvcache.jar");
        output(new ProcessBuilder(REPOSITORY.resolve("kvcache").toString(), "jar", jar.toString()));

        requireFiles(plain.root, jar);
        assertThat(plain.config.at("/config/Env").toString()).doesNotContain("NVIDIA", "LD_LIBRARY_PATH");
    }

    private static void requireFiles(Path root, Path jar) throws Exception {
        assertThat(Files.mismatch(jar, root.resolve("opt/kvcache/kvcache.jar")))
                .as("first byte that differs")
                .isEqualTo(-1);
        assertThat(Files.readString(root.resolve("opt/kvcache/entry.args")))
                .contains("-cp\n/opt/kvcache/kvcache.jar\nio.kvcache.server.image.ImageEntry");
        assertThat(root.resolve("opt/kvcache/kvcache.aot")).isNotEmptyFile();
        try (var files = Files.walk(root)) {
            assertThat(files.map(file -> file.getFileName().toString())).doesNotContain("sh", "bash", "busybox");
        }
        List<String> jdeps = List.of(
                Path.of(System.getProperty("java.home"), "bin", "jdeps").toString(),
                "-summary",
                "--multi-release",
                "25",
                "-include",
                "io\\.kvcache\\..*",
                jar.toString());
        List<String> needed = MODULE.matcher(output(new ProcessBuilder(jdeps)))
                .results()
                .map(found -> found.group(1))
                .distinct()
                .toList();
        String modules =
                output(new ProcessBuilder(root.resolve("opt/java/bin/java").toString(), "--list-modules"));
        assertThat(needed).contains("java.base", "jdk.management");
        assertThat(modules).contains(needed);
    }

    @Test
    void givenAnImage_whenStartedAsItsUserOnAReadOnlyRoot_thenItServesAValueAndStops() throws Exception {
        assumeNamespaces();
        ProcessBuilder serve = container("/usr/local/bin/kvcache", "serve", "--port", "0", "--host-bytes", "64MiB");
        serve.environment().put("KVCACHE_JAVA_OPTS", "-XX:AOTMode=on"); // Fails where what was rehearsed is not mapped.
        Process server = serve.redirectError(folder.resolve("errors").toFile()).start();
        try (BufferedReader said = server.inputReader(UTF_8)) {
            Matcher serves = SERVES.matcher(String.valueOf(said.readLine()));
            assertThat(serves.matches())
                    .as(() -> {
                        try {
                            return Files.readString(folder.resolve("errors"));
                        } catch (IOException none) {
                            return "nothing was said";
                        }
                    })
                    .isTrue();
            String port = serves.group(1);
            assertThat(Files.readString(Path.of("/proc", server.pid() + "", "status")))
                    .containsPattern("Uid:\\s+7379\\s+7379");
            assertThat(set(Integer.parseInt(port))).startsWith("+OK");
            assertThat(output(container("/usr/local/bin/kvcache", "get", "key", "--port", port)))
                    .isEqualTo("value");
            assertThat(output(container("/usr/local/bin/kvcache", "health", port)))
                    .contains("200 OK");
            assertThat(output(container("/opt/venv/bin/python3", "/x/health_probe.py", "127.0.0.1", port)))
                    .isEmpty();
            assertThat(server.toHandle().destroy()).as("SIGTERM").isTrue();
            assertThat(server.waitFor(60, TimeUnit.SECONDS)).isTrue();
            assertThat(server.exitValue()).isZero();
            assertThat(said.readAllAsString()).endsWith("KVCache stopped\n");
        } finally {
            server.destroyForcibly();
        }
    }

    @Test
    void givenAnImageForGpus_whenARuntimeBringsTheDriver_thenItServesFromTheGpu() throws Exception {
        assumeNamespaces();
        assumeThat(STAND_IN)
                .as("the stand-in that the tests of gpu-bridge build")
                .exists();
        UnpackedImage image = make("gpu", "--gpu");
        Path jar = folder.resolve("kvcache-gpu.jar");
        output(new ProcessBuilder(REPOSITORY.resolve("kvcache").toString(), "jar", "--gpu", jar.toString()));
        requireFiles(image.root, jar);
        assertThat(image.config.at("/config/Env").toString())
                .contains("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
        String[] doctor = {"/usr/local/bin/kvcache", "doctor"};
        assertThat(output(image.container("noexec", doctor))).contains("load libcuda.so.1: NO_DRIVER (not found)");

        // As libnvidia-container leaves the driver where there is no /etc/debian_version, and the cache of the loader.
        Path driver = Files.createDirectories(image.root.resolve("usr/lib64"));
        Files.copy(STAND_IN, driver.resolve("libcuda.so.580.1"));
        output(new ProcessBuilder(
                "/sbin/ldconfig",
                "-r",
                image.root.toString(),
                "-f",
                "/etc/ld.so.conf",
                "-C",
                "/etc/ld.so.cache",
                "/usr/lib64"));

        assertThat(output(image.container("noexec", doctor))).containsPattern("GPU driver +CPU stand-in, CUDA ");
        ProcessBuilder serve = image.container(
                "noexec",
                "/usr/local/bin/kvcache",
                "serve",
                "--port",
                "0",
                "--host-bytes",
                "64MiB",
                "--gpu",
                "0:64MiB");
        serve.environment().put("KVCACHE_JAVA_OPTS", "-XX:AOTMode=on");
        Process server =
                serve.redirectError(folder.resolve("gpu-errors").toFile()).start();
        try (BufferedReader said = server.inputReader(UTF_8)) {
            assertThat(String.valueOf(said.readLine())).matches(SERVES);
            assertThat(server.toHandle().destroy()).as("SIGTERM").isTrue();
            assertThat(server.waitFor(60, TimeUnit.SECONDS)).isTrue();
            assertThat(said.readAllAsString())
                    .contains("GPU 0: 64 MiB for blocks")
                    .endsWith("KVCache stopped\n");
        } finally {
            server.destroyForcibly();
        }
    }

    private static String set(int port) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream().write("SET key value\r\n".getBytes(UTF_8));
            return new String(socket.getInputStream().readNBytes(3), UTF_8);
        }
    }

    @Test
    void givenTheNameOfLmcachesServer_whenStarted_thenItTakesItsArguments() throws Exception {
        assumeNamespaces();
        Process refused = container("/opt/venv/bin/lmcache_server", "127.0.0.1").start();

        assertThat(new String(refused.getErrorStream().readAllBytes(), UTF_8))
                .isEqualTo("kvcache: lmcache_server takes HOST PORT [DEVICE]\n");
        assertThat(refused.waitFor()).isEqualTo(2);
    }

    @Test
    void givenWrongArguments_whenAnImageIsAskedFor_thenItSaysWhatItTakes() throws Exception {
        for (String wrong : List.of("--root", "-x")) {
            Process process = new ProcessBuilder(REPOSITORY.resolve("kvcache").toString(), "image", wrong).start();
            assertThat(new String(process.getErrorStream().readAllBytes(), UTF_8))
                    .contains("image takes a FILE, --root DIR or nothing");
            assertThat(process.waitFor()).isEqualTo(2);
        }
    }
}
