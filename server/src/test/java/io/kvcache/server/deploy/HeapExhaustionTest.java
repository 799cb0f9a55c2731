package io.kvcache.server.deploy;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.TestJvm;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A server whose heap is full, started as an image and `./kvcache` start it, with their flags
/// (`.mvn/java-flags.sh`).
@Timeout(120)
@Tag("slow")
final class HeapExhaustionTest {

    private static final Path ENTRY =
            Path.of("..", "deploy", "entry").toAbsolutePath().normalize();

    private static final Pattern SERVES = Pattern.compile("KVCache \\S+ serves at 127\\.0\\.0\\.1:(\\d+).*");

    /// The exit code of a JVM that exits on OutOfMemoryError.
    private static final int OUT_OF_MEMORY = 3;

    /// Clients that each leave as much of a request incomplete as any client may: 60 KB. The heap of 64 MiB is far
    /// too small for so many.
    private static final int MAX_CLIENTS = 2_000;

    private static final int ARGUMENT_BYTES = 60_000;

    private static Process start() throws IOException {
        ProcessBuilder builder =
                new ProcessBuilder(ENTRY.toString(), "serve", "--port", "0", "--host-bytes", Long.toString(64L << 20));
        builder.environment()
                .putAll(Map.of(
                        "JAVA_HOME", System.getProperty("java.home"),
                        "KVCACHE_CLASSPATH", System.getProperty("java.class.path"),
                        "KVCACHE_JAVA_OPTS",
                                "-Xmx64m -XX:MaxDirectMemorySize=256m " + String.join(" ", TestJvm.FLAGS)));
        return builder.redirectErrorStream(true).start();
    }

    private static byte[] halfARequest() {
        String argument = "$" + ARGUMENT_BYTES + "\r\n" + "x".repeat(ARGUMENT_BYTES) + "\r\n";
        return ("*3\r\n$4\r\nPING\r\n" + argument).getBytes(US_ASCII);
    }

    private static int port(BufferedReader said) throws IOException {
        StringBuilder all = new StringBuilder();
        for (String line = said.readLine(); line != null; line = said.readLine()) {
            Matcher serves = SERVES.matcher(line);
            if (serves.matches()) {
                return Integer.parseInt(serves.group(1));
            }
            all.append(line).append('\n');
        }
        throw new AssertionError("it does not serve: " + all);
    }

    /// Sends until the server is gone, or all is sent.
    private static void fill(int port, Queue<Socket> sockets) {
        byte[] half = halfARequest();
        try {
            for (int client = 0; client < MAX_CLIENTS; client++) {
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
                sockets.add(socket);
                socket.getOutputStream().write(half);
            }
        } catch (IOException gone) {
            // The thread that waits for the server's end checks its exit code.
        }
    }

    @Test
    void givenAServer_whenItsHeapIsFull_thenItEndsAtOnceAndSaysWhy() throws Exception {
        Process process = start();
        Queue<Socket> sockets = new ConcurrentLinkedQueue<>();
        try (BufferedReader said = process.inputReader(UTF_8)) {
            int port = port(said);
            Thread filling = Thread.ofVirtual().start(() -> fill(port, sockets));
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
            filling.join();
            assertThat(process.exitValue()).isEqualTo(OUT_OF_MEMORY);
            assertThat(said.readAllAsString())
                    .contains("Terminating due to java.lang.OutOfMemoryError: Java heap space")
                    .doesNotContain("KVCache stops");
        } finally {
            process.destroyForcibly();
            for (Socket socket : sockets) {
                socket.close();
            }
        }
    }
}
