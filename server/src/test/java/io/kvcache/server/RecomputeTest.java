package io.kvcache.server;

import static io.kvcache.server.DiskTestServer.VALUES;
import static io.kvcache.server.DiskTestServer.ascii;
import static io.kvcache.server.DiskTestServer.chunk;
import static io.kvcache.server.DiskTestServer.get;
import static io.kvcache.server.DiskTestServer.lmRequest;
import static io.kvcache.server.DiskTestServer.set;
import static io.kvcache.server.DiskTestServer.value;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.server.config.RecomputeConfig;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Clients of engines that compute faster than a disk reads, or slower.
@Timeout(300)
@Tag("slow")
final class RecomputeTest {

    /// Runs of reads before anything is known of a disk.
    private static final int READS = 8;

    @TempDir
    private Path folder = Path.of("");

    private DiskTestServer start(double tokensPerSecond) throws IOException {
        RecomputeConfig prefill =
                new RecomputeConfig(PrefillCost.ofTokenRate(tokensPerSecond), 256, Duration.ofSeconds(60));
        DiskTestServer server = new DiskTestServer(folder, false, prefill);
        server.fill(DiskTestServer::chunk);
        try (Socket socket = server.connect()) {
            for (int number = 0; number < READS; number++) {
                get(socket, chunk(number), value(number));
            }
        }
        return server;
    }

    private static boolean existsByResp(Socket socket, String key) throws IOException {
        socket.getOutputStream().write(ascii("EXISTS " + key + "\r\n"));
        return new String(socket.getInputStream().readNBytes(4), StandardCharsets.US_ASCII).startsWith(":1");
    }

    private static int toldByResp(DiskTestServer server) throws IOException {
        int told = 0;
        for (int number = 0; number < VALUES; number++) {
            try (Socket socket = server.connect()) {
                told += existsByResp(socket, chunk(number)) ? 1 : 0;
            }
        }
        return told;
    }

    private static int toldByLm(DiskTestServer server) throws IOException {
        int told = 0;
        for (int number = 0; number < VALUES; number++) {
            try (Socket socket = server.connect()) {
                socket.getOutputStream().write(lmRequest(3, chunk(number)));
                int code = ByteBuffer.wrap(socket.getInputStream().readNBytes(36))
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .getInt();
                told += code == 200 ? 1 : 0;
            }
        }
        return told;
    }

    @Test
    void givenAnEngineThatIsFasterThanTheDisk_whenLookedUp_thenWhatIsOnDiskIsToBeComputed() throws IOException {
        try (DiskTestServer server = start(1e15)) {
            int told = toldByResp(server);
            assertThat(told).isBetween(1, VALUES - 10);
            assertThat(toldByLm(server)).isBetween(1, VALUES - 10);
            try (Socket socket = server.connect()) {
                get(socket, chunk(VALUES / 2), value(VALUES / 2)); // a read is served, wherever it lies
                set(socket, "user:1", new byte[] {1});
                assertThat(existsByResp(socket, "user:1")).as("no chunk").isTrue();
            }
        }
    }

    @Test
    void givenAnEngineThatIsSlowerThanTheDisk_whenLookedUp_thenAllIsToldOf() throws IOException {
        try (DiskTestServer server = start(1e-3)) {
            long before = server.loaded();
            assertThat(toldByResp(server)).isEqualTo(VALUES);
            assertThat(toldByLm(server)).isEqualTo(VALUES);
            assertThat(server.loaded()).as("nothing is read for a look-up").isEqualTo(before);
        }
    }
}
