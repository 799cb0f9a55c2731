package io.kvcache.bench.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

final class ServeCommandTest {

    private static final Pattern SERVES = Pattern.compile("KVCache .* serves at 127\\.0\\.0\\.1:(\\d+): 64 MiB .*");

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenAServer_whenItIsTerminated_thenItHasServedAndExitsWithZero() throws Exception {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Kvcache.class.getName(),
                        "serve",
                        "--port",
                        "0",
                        "--host-bytes",
                        "64MiB")
                .redirectError(folder.resolve("errors").toFile())
                .start();
        try (BufferedReader said = process.inputReader(UTF_8)) {
            Matcher serves = SERVES.matcher(String.valueOf(said.readLine()));
            assertThat(serves.matches()).isTrue();
            assertThat(ask(Integer.parseInt(serves.group(1)))).isEqualTo("+OK\r\n$1\r\nv\r\n");

            assertThat(process.toHandle().destroy()).isTrue();

            assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).isZero();
            assertThat(said.readAllAsString()).endsWith("KVCache stopped\n");
            assertThat(Files.readString(folder.resolve("errors"))).isEmpty();
        } finally {
            process.destroyForcibly();
        }
    }

    private static String ask(int port) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream().write("SET k v\r\nGET k\r\n".getBytes(UTF_8));
            return new String(socket.getInputStream().readNBytes(12), UTF_8);
        }
    }

    @Test
    void givenWrongSettings_whenCheckedOrServed_thenTheyAreNamedAndNothingStarts() throws IOException {
        Path file = Files.writeString(folder.resolve("kvcache.yaml"), "listen: {prot: 1}\n");

        assertThat(run(1, "config", "check", "--config", file.toString()))
                .contains("there is no setting listen.prot; is it listen.port?");
        assertThat(run(2, "serve", "--config", file.toString())).contains("kvcache serve: ", "listen.prot");
        assertThat(run(2, "serve", "--port", "x")).contains("--port: listen.port is 'x'; it takes a whole number");
        assertThat(run(0, "config", "check", "--set", "listen.port=1", "--host-bytes", "64MiB"))
                .contains("good: listens at 127.0.0.1:1, 64 MiB of host memory");
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
