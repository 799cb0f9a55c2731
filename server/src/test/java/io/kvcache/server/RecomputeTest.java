package io.kvcache.server;

import static io.kvcache.server.DiskServer.ascii;
import static io.kvcache.server.DiskServer.value;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.cost.PrefillCost;
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
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Clients of engines that compute faster than a disk reads, or slower.
@Timeout(300)
final class RecomputeTest {

    /// Of 2 MiB: more than the server's 192 MiB hold.
    private static final int CHUNKS = 120;

    /// Runs of reads before anything is known of a disk.
    private static final int READS = 8;

    @TempDir
    private Path folder = Path.of("");

    private TestServer start(double tokensPerSecond) throws IOException {
        TestServer server = TestServer.start(
                TransportKind.AUTO,
                NetLimits.defaults(),
                new DisksConfig(
                        List.of(new DiskConfig("disks.0", folder, 1L << 30, 0, 0, OnIncompatible.REFUSE)),
                        AdmissionKind.ALWAYS,
                        Duration.ofSeconds(60),
                        false,
                        new PrefillConfig(PrefillCost.atRate(tokensPerSecond), 256, Duration.ofSeconds(60))));
        fill(server);
        return server;
    }

    private static Socket connect(TestServer server) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port());
        socket.setSoTimeout(60_000);
        return socket;
    }

    /// Each a sequence of its own.
    private static String key(int number) {
        return "vllm@model@1@0@%012x".formatted(0xABCDEF000000L + number);
    }

    private static void fill(TestServer server) throws IOException {
        try (Socket socket = connect(server)) {
            for (int number = 0; number < CHUNKS; number++) {
                set(socket, key(number), value(number));
                boolean pause = number % 20 == 0 || number == CHUNKS - 1;
                assertThat(!pause || server.server().cache().flush(TimeUnit.SECONDS.toNanos(60)))
                        .isTrue();
            }
            for (int number = 0; number < READS; number++) {
                get(socket, key(number), value(number).length);
            }
        }
    }

    private static void set(Socket socket, String key, byte[] value) throws IOException {
        socket.getOutputStream()
                .write(ascii("*3\r\n$3\r\nSET\r\n$" + key.length() + "\r\n" + key + "\r\n$" + value.length + "\r\n"));
        socket.getOutputStream().write(value);
        socket.getOutputStream().write(ascii("\r\n"));
        assertThat(socket.getInputStream().readNBytes(5)).isEqualTo(ascii("+OK\r\n"));
    }

    private static void get(Socket socket, String key, int bytes) throws IOException {
        socket.getOutputStream().write(ascii("GET " + key + "\r\n"));
        byte[] head = ascii("$" + bytes + "\r\n");
        assertThat(socket.getInputStream().readNBytes(head.length)).isEqualTo(head);
        socket.getInputStream().skipNBytes(bytes + 2);
    }

    private static boolean existsByResp(Socket socket, String key) throws IOException {
        socket.getOutputStream().write(ascii("EXISTS " + key + "\r\n"));
        return new String(socket.getInputStream().readNBytes(4), StandardCharsets.US_ASCII).startsWith(":1");
    }

    private static int toldByResp(TestServer server) throws IOException {
        int told = 0;
        for (int number = 0; number < CHUNKS; number++) {
            try (Socket socket = connect(server)) {
                told += existsByResp(socket, key(number)) ? 1 : 0;
            }
        }
        return told;
    }

    private static int toldByLm(TestServer server) throws IOException {
        int told = 0;
        for (int number = 0; number < CHUNKS; number++) {
            try (Socket socket = connect(server)) {
                ByteBuffer request = ByteBuffer.allocate(158).order(ByteOrder.LITTLE_ENDIAN);
                request.putInt(3)
                        .putInt(0)
                        .put(ascii(key(number) + " ".repeat(150 - key(number).length())));
                socket.getOutputStream().write(request.array());
                int code = ByteBuffer.wrap(socket.getInputStream().readNBytes(8))
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .getInt();
                told += code == 200 ? 1 : 0;
            }
        }
        return told;
    }

    private static long loaded(TestServer server) {
        return server.server().cache().diskStats().getFirst().loaded();
    }

    @Test
    void givenAnEngineThatIsFasterThanTheDisk_whenLookedUp_thenWhatIsOnDiskIsToBeComputed() throws IOException {
        try (TestServer server = start(1e15)) {
            int told = toldByResp(server);
            assertThat(told).isBetween(1, CHUNKS - 10);
            assertThat(toldByLm(server)).isBetween(1, CHUNKS - 10);
            try (Socket socket = connect(server)) {
                get(socket, key(CHUNKS / 2), value(CHUNKS / 2).length); // a read is served, wherever it lies
                set(socket, "user:1", new byte[] {1});
                assertThat(existsByResp(socket, "user:1")).as("no chunk").isTrue();
            }
        }
    }

    @Test
    void givenAnEngineThatIsSlowerThanTheDisk_whenLookedUp_thenAllIsToldOf() throws IOException {
        try (TestServer server = start(1e-3)) {
            long before = loaded(server);
            assertThat(toldByResp(server)).isEqualTo(CHUNKS);
            assertThat(toldByLm(server)).isEqualTo(CHUNKS);
            assertThat(loaded(server)).as("nothing is read for a look-up").isEqualTo(before);
        }
    }
}
