package io.kvcache.server;

import static io.kvcache.server.DiskServer.ascii;
import static io.kvcache.server.DiskServer.value;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.store.PrefetchStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.server.config.DiskConfig;
import io.kvcache.server.config.DisksConfig;
import io.kvcache.server.config.PrefillConfig;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.TransportKind;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Chunks of a sequence that are on disk, read one after another by clients that look them up
/// first.
@Timeout(300)
final class PrefetchedValuesTest {

    /// Of 2 MiB: more than the server's 192 MiB hold.
    private static final int CHUNKS = 120;

    @TempDir
    private Path folder = Path.of("");

    private TestServer start(boolean prefetch) {
        return TestServer.start(
                TransportKind.AUTO,
                NetLimits.defaults(),
                new DisksConfig(
                        List.of(new DiskConfig("disks.0", folder, 1L << 30, 0, 0, OnIncompatible.REFUSE)),
                        AdmissionKind.ALWAYS,
                        Duration.ofSeconds(60),
                        prefetch,
                        PrefillConfig.defaults()));
    }

    private static Socket connect(TestServer server) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port());
        socket.setSoTimeout(60_000);
        return socket;
    }

    private static String key(int number) {
        return "vllm@model@1@0@%012x".formatted(0xABCDEF000000L + number);
    }

    private static void fill(TestServer server) throws IOException {
        try (Socket socket = connect(server)) {
            for (int number = 0; number < CHUNKS; number++) {
                byte[] value = value(number);
                socket.getOutputStream()
                        .write(ascii("*3\r\n$3\r\nSET\r\n$" + key(number).length() + "\r\n" + key(number) + "\r\n$"
                                + value.length + "\r\n"));
                socket.getOutputStream().write(value);
                socket.getOutputStream().write(ascii("\r\n"));
                assertThat(socket.getInputStream().readNBytes(5)).isEqualTo(ascii("+OK\r\n"));
                boolean pause = number % 20 == 0 || number == CHUNKS - 1;
                assertThat(!pause || server.server().cache().flush(TimeUnit.SECONDS.toNanos(60)))
                        .isTrue();
            }
        }
    }

    private static void readByResp(TestServer server) throws IOException {
        try (Socket socket = connect(server)) {
            for (int number = 0; number < CHUNKS; number++) {
                socket.getOutputStream().write(ascii("EXISTS " + key(number) + "\r\n"));
                assertThat(socket.getInputStream().readNBytes(4)).isEqualTo(ascii(":1\r\n"));
            }
            for (int number = 0; number < CHUNKS; number++) {
                byte[] value = value(number);
                socket.getOutputStream().write(ascii("GET " + key(number) + "\r\n"));
                byte[] head = ascii("$" + value.length + "\r\n");
                assertThat(socket.getInputStream().readNBytes(head.length)).isEqualTo(head);
                assertThat(Arrays.equals(socket.getInputStream().readNBytes(value.length), value))
                        .as(key(number))
                        .isTrue();
                assertThat(socket.getInputStream().readNBytes(2)).isEqualTo(ascii("\r\n"));
            }
        }
    }

    /// GET as LMCache sent it in 2024: command, length, key padded with blanks to 150 bytes.
    private static byte[] lmGet(String key) {
        ByteBuffer request = ByteBuffer.allocate(158).order(ByteOrder.LITTLE_ENDIAN);
        request.putInt(2).putInt(0).put(ascii(key + " ".repeat(150 - key.length())));
        return request.array();
    }

    private static void readByLm(TestServer server) throws IOException {
        try (Socket socket = connect(server)) {
            for (int number = 0; number < CHUNKS; number++) {
                socket.getOutputStream().write(lmGet(key(number)));
                byte[] head = socket.getInputStream().readNBytes(8);
                ByteBuffer numbers = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
                assertThat(numbers.getInt()).isEqualTo(200);
                byte[] value = value(number);
                assertThat(numbers.getInt()).isEqualTo(value.length);
                assertThat(Arrays.equals(socket.getInputStream().readNBytes(value.length), value))
                        .as(key(number))
                        .isTrue();
            }
        }
    }

    private static String stats(TestServer server) throws IOException, InterruptedException {
        URI page = URI.create("http://127.0.0.1:" + server.port() + "/v1/stats");
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(HttpRequest.newBuilder(page).build(), BodyHandlers.ofString(StandardCharsets.UTF_8))
                    .body();
        }
    }

    @Test
    void givenASequenceOnDisk_whenReadOneByOne_thenChunksAreThereBeforeTheyAreAskedFor() throws Exception {
        try (TestServer server = start(true)) {
            fill(server);
            readByResp(server);
            PrefetchStats first = server.server().cache().prefetched();
            assertThat(first.used()).isPositive();
            readByLm(server);
            assertThat(server.server().cache().prefetched().used()).isGreaterThan(first.used());
            assertThat(stats(server)).contains("\"prefetched\":{\"begun\":");
            server.server().cache().validate();
        }
    }

    @Test
    void givenAServerThatWasNotToldTo_whenReadOneByOne_thenEachIsReadWhenAskedFor() throws Exception {
        try (TestServer server = start(false)) {
            fill(server);
            readByResp(server);
            assertThat(server.server().cache().prefetched().begun()).isZero();
        }
    }
}
