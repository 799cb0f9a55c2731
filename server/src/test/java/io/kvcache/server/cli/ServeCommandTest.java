package io.kvcache.server.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.contract.Pause;
import io.kvcache.core.contract.TestJvm;
import io.kvcache.server.CacheServer;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import tools.jackson.databind.json.JsonMapper;

@Timeout(600)
@Tag("slow")
final class ServeCommandTest {

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenAServer_whenItIsTerminated_thenItHasServedAndExitsWithZero() throws Exception {
        Path errors = folder.resolve("errors");
        Path trace = folder.resolve("trace.jsonl");
        try (ServeCommandProcess server = new ServeCommandProcess(errors, "--trace-out", trace.toString())) {
            assertThat(ask(server.port(), "SET k v\r\nGET k\r\n", 12)).isEqualTo("+OK\r\n$1\r\nv\r\n");

            server.terminate();

            assertThat(server.awaitExit()).endsWith("KVCache stopped\n");
            assertThat(Files.readAllLines(errors))
                    .hasSize(4)
                    .allMatch(line -> line.startsWith("time="))
                    .satisfiesExactly(
                            line -> assertThat(line).contains("what clients use is written to " + trace),
                            line -> assertThat(line).contains("level=info", " serves at 127.0.0.1:" + server.port()),
                            line -> assertThat(line)
                                    .contains("level=info", "KVCache stops: finishes requests that have begun"),
                            line -> assertThat(line).contains("level=info", "KVCache stopped"));
            assertThat(trace).isNotEmptyFile();
        }
    }

    @Test
    void givenAnotherServerThatTakesTheUsualPortFirst_whenStarted_thenItServesWithoutIt() throws Exception {
        try (ServerSocket other = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            ServerConfig late = config("'127.0.0.1:" + other.getLocalPort() + "'");
            try (CacheServer server = ServeCommand.start(late, config("off"))) {
                assertThat(server.remoteAddress()).isNull();
                assertThat(server.addresses()).hasSize(1);
            }
            assertThatThrownBy(() -> ServeCommand.start(late, late).close())
                    .as("a port that was asked for")
                    .hasMessageContaining("transport.listen is 127.0.0.1:" + other.getLocalPort());
        }
    }

    private static ServerConfig config(String transport) throws ConfigException {
        String settings = "listen: {port: 0}\nmemory: {host_bytes: 64MiB}\ntransport: {listen: " + transport + "}";
        return new ConfigReader(new HostResources(16L << 30, 2), Map.of())
                .read(new ConfigReader.Source("f", settings), Map.of());
    }

    @Test
    void givenALogOfJson_whenServedAndTerminated_thenThereIsNothingElseOnEitherStream() throws Exception {
        Path errors = folder.resolve("errors");
        Path out = folder.resolve("out");
        Process server = process(out, errors, "--set", "log.format=json", "--set", "shutdown.delay=1s");
        try {
            int port = portOf(server, errors);
            assertThat(ask(port, "SET k v\r\n", 5)).isEqualTo("+OK\r\n");
            assertThat(server.toHandle().destroy()).isTrue();
            assertThat(server.waitFor(120, TimeUnit.SECONDS)).isTrue();

            assertThat(server.exitValue()).isZero();
            assertThat(Files.readString(out)).isEmpty();
            List<String> messages = messages(errors);
            assertThat(messages)
                    .anyMatch(line -> line.startsWith("memory: heap "))
                    .containsSubsequence(
                            "KVCache stops: reports not ready, and serves for 1 s more (shutdown.delay)",
                            "KVCache stops: finishes requests that have begun, for 25 s at most",
                            "KVCache stopped");
        } finally {
            server.destroyForcibly();
        }
    }

    @Test
    void givenALogOfJson_whenTheStartFails_thenTheReasonIsJsonToo() throws Exception {
        Path errors = folder.resolve("errors");
        Path out = folder.resolve("out");
        Process wrong = process(out, errors, "--set", "log.format=json", "--set", "log.level=loud");
        assertThat(wrong.waitFor(120, TimeUnit.SECONDS)).isTrue();
        assertThat(wrong.exitValue()).isEqualTo(2);
        assertThat(messages(errors))
                .containsExactly("--set log.level: log.level is 'loud'; it takes debug, info, warning, error");

        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            String port = "listen.port=" + taken.getLocalPort();
            Process refused = process(out, errors, "--set", "log.format=json", "--set", port);
            assertThat(refused.waitFor(120, TimeUnit.SECONDS)).isTrue();
            assertThat(refused.exitValue()).isEqualTo(1);
            assertThat(messages(errors).getLast()).startsWith("cannot listen at 127.0.0.1:" + taken.getLocalPort());
        }
        assertThat(Files.readString(out)).isEmpty();
    }

    private static Process process(Path out, Path errors, String... more) throws IOException {
        List<String> command = new ArrayList<>(List.of(TestJvm.program()));
        command.addAll(TestJvm.FLAGS);
        command.addAll(List.of(
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-cp",
                System.getProperty("java.class.path"),
                Kvcache.class.getName(),
                "serve",
                "--host-bytes=64MiB",
                "--set",
                "listen.port=0"));
        command.addAll(List.of(more));
        return new ProcessBuilder(command)
                .redirectOutput(out.toFile())
                .redirectError(errors.toFile())
                .start();
    }

    private static int portOf(Process server, Path errors) throws Exception {
        Pattern serves = Pattern.compile(" serves at 127\\.0\\.0\\.1:(\\d+):");
        Matcher found = serves.matcher(Files.readString(errors));
        while (!found.find()) {
            assertThat(server.waitFor(50, TimeUnit.MILLISECONDS))
                    .as("ended: %s", Files.readString(errors))
                    .isFalse();
            found = serves.matcher(Files.readString(errors));
        }
        return Integer.parseInt(found.group(1));
    }

    private static List<String> messages(Path log) throws IOException {
        return Files.readAllLines(log).stream()
                .map(line -> JsonMapper.shared().readTree(line).get("msg").stringValue())
                .toList();
    }

    private static String ask(int port, String requests, int answerBytes) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream().write(requests.getBytes(UTF_8));
            return new String(socket.getInputStream().readNBytes(answerBytes), UTF_8);
        }
    }

    @Test
    void givenADisk_whenTerminatedOrKilledAndRestarted_thenWhatWasStoredIsServed() throws Exception {
        String disk = folder.resolve("disk") + ":64MiB";
        served(
                disk,
                false,
                port -> assertThat(ask(port, "SET a 1\r\nSET b 22\r\n", 10)).isEqualTo("+OK\r\n+OK\r\n"));
        served(disk, true, port -> {
            assertThat(once(port, "GET b\r\n", "$2\r\n22\r\n")).isTrue();
            assertThat(ask(port, "SET c 333\r\nDEL a\r\nSAVE\r\n", 14)).isEqualTo("+OK\r\n:1\r\n+OK\r\n");
        });
        served(disk, false, port -> {
            assertThat(once(port, "MGET b c a\r\n", "*3\r\n$2\r\n22\r\n$3\r\n333\r\n$-1\r\n"))
                    .isTrue();
        });
    }

    private interface Use {
        void of(int port) throws IOException;
    }

    /// Starts a server, uses it, and kills or terminates it.
    private void served(String disk, boolean kill, Use use) throws Exception {
        try (ServeCommandProcess server = new ServeCommandProcess(folder.resolve("errors"), "--disk", disk)) {
            assertThat(server.readLine("  console at "))
                    .isEqualTo("  console at http://127.0.0.1:" + server.port() + "/");
            assertThat(server.readLine("  disk ")).contains(": 64 MiB, for values below 1 MiB");
            assertThat(server.readLine("  memory: heap ")).contains(" + values 0.06 GiB + ");
            use.of(server.port());
            if (kill) {
                server.kill();
            } else {
                server.terminate();
                assertThat(server.awaitExit()).endsWith("at most\nKVCache stopped\n");
            }
        }
    }

    /// Returns whether the reply becomes this one. A value may be missing until recovery from disk ends.
    private static boolean once(int port, String request, String answer) throws IOException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            while (System.nanoTime() < end) {
                socket.getOutputStream().write((request + "PING\r\n").getBytes(UTF_8));
                StringBuilder got = new StringBuilder();
                while (got.indexOf("+PONG\r\n") < 0) {
                    got.append((char) socket.getInputStream().read());
                }
                if (got.toString().equals(answer + "+PONG\r\n")) {
                    return true;
                }
                Pause.briefly();
            }
            return false;
        }
    }

    @Test
    void givenADirectoryThatIsAFile_whenServed_thenItIsRefusedWithItsReason() throws Exception {
        Path disk = Files.writeString(folder.resolve("file"), "not a directory");

        assertThat(run(1, "serve", "--port", "0", "--host-bytes", "64MiB", "--disk", disk + ":64MiB"))
                .startsWith("kvcache: Cannot use " + disk + " for a disk tier: ");
    }

    @Test
    void givenAPortThatIsTaken_whenServed_thenItIsNamed() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            String port = Integer.toString(taken.getLocalPort());

            assertThat(run(1, "serve", "--port", port, "--host-bytes", "64MiB", "--transport", "off"))
                    .startsWith("kvcache: cannot listen at 127.0.0.1:" + port + ": address already in use")
                    .endsWith("; stop what has that port, or set another one\n");
        }
    }

    @Test
    void givenAnAddressOfAnotherMachine_whenServed_thenTheRemedyIsAnotherAddress() {
        assertThat(run(
                        1,
                        "serve",
                        "--address",
                        "192.0.2.1",
                        "--port",
                        "0",
                        "--host-bytes",
                        "64MiB",
                        "--transport",
                        "off",
                        "--set",
                        "listen.without_auth=true"))
                .startsWith("kvcache: cannot listen at 192.0.2.1:0: this machine has no such address; set an address")
                .doesNotContain("stop what has that port");
    }

    @Test
    void givenAConfigThatIsNoText_whenChecked_thenItIsNamedWithItsReason() throws Exception {
        Path binary = Files.write(folder.resolve("binary.yaml"), new byte[] {(byte) 0xff, (byte) 0xfe, 0});

        assertThat(run(2, "config", "check", "--config", binary.toString()))
                .startsWith(
                        "kvcache config check: --config " + binary + " is not UTF-8 text; it takes a file of YAML\n");
        assertThat(run(2, "config", "check", "--config", folder.toString()))
                .startsWith("kvcache config check: --config " + folder + " is a directory; it takes a file of YAML\n");
        assertThat(run(2, "serve", "--config", folder.resolve("none").toString()))
                .startsWith("kvcache serve: --config " + folder.resolve("none") + ": there is no such file\n");
    }

    @Test
    void givenFilesThatASettingNames_whenChecked_thenThoseThatCannotBeUsedAreSaid() throws Exception {
        Path salts = Files.writeString(folder.resolve("salts"), "the-salt-of-red\nbad@salt\n");
        Path file = Files.writeString(folder.resolve("files.yaml"), """
                tenants:
                  - { name: blue, password_file: /nowhere/passwords, quota: 1MiB }
                  - { name: red, prefixes: ["red:"], salts: [another-of-red], salt_file: %s }
                listen: { tls: { certificate: /nowhere/server.pem, key: /nowhere/key } }
                """.formatted(salts));
        String[] check = {"config", "check", "--config", file.toString(), "--host-bytes", "64MiB"};

        assertThat(run(1, check))
                .contains("files.yaml:2: tenants.0.password_file /nowhere/passwords cannot be read: it does not exist")
                .contains("tenants.1.salt_file " + salts + " has a line that is not a salt; it takes 8 to 128")
                .contains("/nowhere/server.pem cannot be read: it does not exist")
                .doesNotContain("Exception")
                .doesNotContain("bad@salt");
        assertThat(run(
                        0,
                        Stream.concat(Stream.of(check), Stream.of("--no-files")).toArray(String[]::new)))
                .contains("tenant red: user red without a password, weight 1, keys that begin with red:,"
                        + " keys that end with one of 1 salts, keys that end with a salt of " + salts);
    }

    @Test
    void givenFoldersThatCannotBeUsed_whenChecked_thenTheyAreNamedAndNothingIsMade() throws Exception {
        Path file = Files.writeString(folder.resolve("a-file"), "");
        Path missing = folder.resolve("missing");
        Path config =
                Files.writeString(folder.resolve("disks.yaml"), """
                disks:
                  - { directory: %s, bytes: 64MiB }
                  - { directory: %s, bytes: 64MiB }
                  - { directory: %s, bytes: 64MiB }
                """.formatted(file, missing, file.resolve("below")));
        String[] check = {"config", "check", "--config", config.toString(), "--host-bytes", "64MiB"};
        assertThat(run(1, check))
                .contains("disks.0: Cannot use " + file)
                .contains("it is a file; name a directory")
                .contains("disks.2: Cannot use " + file.resolve("below"))
                .doesNotContain("disks.1");
        assertThat(missing).doesNotExist();
    }

    @Test
    void givenADirectoryThatDoesNotExist_whenChecked_thenAWarningSaysThatItWillBeMade() {
        Path missing = folder.resolve("no").resolve("such");
        assertThat(run(
                        0,
                        "config",
                        "check",
                        "--set",
                        "listen.port=1",
                        "--host-bytes",
                        "64MiB",
                        "--disk",
                        missing + ":64MiB"))
                .contains("warning: --disk: disks.0.directory is " + missing
                        + ", which does not exist; serve makes it, below " + folder)
                .contains("good: 64 MiB of host memory");
        assertThat(folder.resolve("no")).doesNotExist();
    }

    @Test
    void givenMistakesInSettingsAndFiles_whenChecked_thenAllAreListedAtOnce() throws IOException {
        Path file = Files.writeString(folder.resolve("many.yaml"), """
                tenants:
                  - { name: blue, password_hash: abc, quota: much }
                  - { name: red, password_file: /nowhere/red, weight: heavy }
                  - { name: green, password_file: /nowhere/green, salts: [short] }
                trace: { out: /nowhere/trace }
                memory: { host_bytes: lots }
                """);
        assertThat(run(2, "config", "check", "--config", file.toString()))
                .contains(
                        "tenants.0.quota is 'much'",
                        "tenants.1.weight is 'heavy'",
                        "tenants.2.salts has an invalid one",
                        "memory.host_bytes is 'lots'",
                        "tenants.0.password_hash has no hash of a password",
                        "tenants.1.password_file /nowhere/red cannot be read: it does not exist",
                        "tenants.2.password_file /nowhere/green cannot be read: it does not exist",
                        "trace.out is /nowhere/trace, which cannot be written: /nowhere does not exist");
    }

    @Test
    void givenATraceThatCannotBeWritten_whenServed_thenTheMessageSaysWhatToDo() {
        assertThat(run(1, "serve", "--port", "0", "--host-bytes", "64MiB", "--trace-out", "/nowhere/x"))
                .contains("trace.out is /nowhere/x, which cannot be written: ", "does not exist; name a file in a")
                .doesNotContain("Exception");
    }

    @Test
    void givenTwoDirectoriesThatCannotBeUsed_whenServed_thenBothAreNamed() throws Exception {
        Path one = Files.writeString(folder.resolve("one"), "a file");
        Path two = Files.writeString(folder.resolve("two"), "a file");
        assertThat(run(
                        1,
                        "serve",
                        "--port",
                        "0",
                        "--host-bytes",
                        "64MiB",
                        "--disk",
                        one + ":64MiB",
                        "--disk",
                        two + ":64MiB"))
                .contains("Cannot use " + one, "Cannot use " + two);
    }

    @Test
    void givenADiskInAnothersDirectory_whenServed_thenRefusedBothWaysRoundAndNothingIsMade() {
        Path outer = folder.resolve("outer");
        Path inner = outer.resolve("inner");
        for (List<Path> disks : List.of(List.of(outer, inner), List.of(inner, outer))) {
            assertThat(run(
                            1,
                            "serve",
                            "--port",
                            "0",
                            "--host-bytes",
                            "64MiB",
                            "--disk",
                            disks.getFirst() + ":64MiB",
                            "--disk",
                            disks.getLast() + ":64MiB"))
                    .contains("Cannot use " + inner + " for a disk tier: it lies in " + outer);
            assertThat(outer).doesNotExist();
        }
    }

    @Test
    void givenATraceInADisksDirectory_whenServed_thenRefused() throws Exception {
        Path disk = Files.createDirectory(folder.resolve("disk"));
        Path trace = disk.resolve("trace");
        assertThat(run(
                        1,
                        "serve",
                        "--port",
                        "0",
                        "--host-bytes",
                        "64MiB",
                        "--disk",
                        disk + ":64MiB",
                        "--trace-out",
                        trace.toString()))
                .contains("trace.out is " + trace + ", in the directory of disks.0, " + disk)
                .doesNotContain("Exception");
        assertThat(trace).doesNotExist();
    }

    @Test
    void givenTrustDomains_whenChecked_thenItSaysWhoMapsWhat() throws Exception {
        Path file = Files.writeString(folder.resolve("domains.yaml"), """
                transport: { listen: "127.0.0.1:7420" }
                tenants: [{ name: blue, secret_file: /b }, { name: green, secret_file: /g }]
                domains:
                  - { name: one, tenants: [blue], host_bytes: 64MiB, shared_memory: of-blue }
                  - { name: two, tenants: [green], host_bytes: 32MiB }
                """);
        assertThat(run(0, "config", "check", "--config", file.toString(), "--host-bytes", "64MiB", "--no-files"))
                .contains("domain one: 64 MiB of its own for tenants blue, which they and processes of the server's"
                        + " own user may map at /dev/shm/of-blue")
                .contains("domain two: 32 MiB of its own for tenants green, not mapped");
    }

    @Test
    void givenWrongSettings_whenCheckedOrServed_thenTheyAreNamedAndNothingStarts() throws IOException {
        Path file = Files.writeString(folder.resolve("kvcache.yaml"), "listen: {prot: 1}\n");

        assertThat(run(2, "config", "check", "--config", file.toString()))
                .contains("there is no setting listen.prot; is it listen.port?");
        assertThat(run(2, "serve", "--config", file.toString())).contains("kvcache serve: ", "listen.prot");
        assertThat(run(2, "serve", "--port", "x")).contains("--port: listen.port is 'x'; it takes a whole number");
        assertThat(run(0, "config", "check", "--set", "listen.port=1", "--host-bytes", "64MiB"))
                .contains(
                        "good: 64 MiB of host memory",
                        "listener listen: 127.0.0.1:1, http, lm, pages, resp, no TLS, no authentication",
                        "tenant default: user default without a password, weight 1",
                        "memory: heap ");
    }

    @Test
    void givenAGpuAndNoModuleForIt_whenChecked_thenTheMessageSaysHowToMakeAServerWithIt() {
        String[] check = {"config", "check", "--gpu", "0:8GiB:40GiB", "--host-bytes", "64MiB"};
        assertThat(run(1, check))
                .contains("gpu.0: this server has no module for GPUs; use ./kvcache serve, or make it anew with the"
                        + " module: ./kvcache jar --gpu, ./kvcache image --gpu");
        assertThat(run(
                        0,
                        Stream.concat(Stream.of(check), Stream.of("--no-files")).toArray(String[]::new)))
                .contains(
                        "GPU 0: 8 GiB for blocks below host memory, up to 40 GiB by resize, engines of this host may");
    }

    @Test
    void givenAPolicy_whenChecked_thenItSaysWhatHintsCount() {
        String disk = folder + ":1GiB";
        List<String> check = List.of(
                "config", "check", "--no-files", "--set", "listen.port=1", "--host-bytes", "64MiB", "--disk", disk);
        List<String> plain = new ArrayList<>(check);
        plain.addAll(List.of("--set", "memory.policy=lru"));

        assertThat(run(0, plain.toArray(String[]::new)))
                .contains("hints: LABEL and WEIGH are not taken, memory.policy is lru; they take importance");
        assertThat(run(0, check.toArray(String[]::new)))
                .contains("hints: all count; LABEL and WEIGH order evictions from memory, not from disks");
    }

    @Test
    void givenMoreMemoryThanThereMayBe_whenCheckedOrServed_thenItIsRefusedWithWhatWouldFit() {
        String most = Long.toString(HostResources.detect().memoryBytes() / 100 * 89);

        assertThat(run(1, "config", "check", "--host-bytes", most)).contains("set memory.host_bytes to ");
        assertThat(run(1, "serve", "--port", "0", "--host-bytes", most))
                .startsWith("kvcache: memory: heap ")
                .contains("It takes up to 90 %");
    }

    private static String run(int expected, String... arguments) {
        StringWriter said = new StringWriter();
        CommandLine line = Kvcache.commandLine();
        line.setOut(new PrintWriter(said));
        line.setErr(new PrintWriter(said));
        assertThat(line.execute(arguments)).isEqualTo(expected);
        return said.toString();
    }
}
