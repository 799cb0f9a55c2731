package io.kvcache.server;

import static io.kvcache.server.DiskTestServer.VALUES;
import static io.kvcache.server.DiskTestServer.ascii;
import static io.kvcache.server.DiskTestServer.chunk;
import static io.kvcache.server.DiskTestServer.get;
import static io.kvcache.server.DiskTestServer.lmRequest;
import static io.kvcache.server.DiskTestServer.value;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.core.stats.PrefetchStats;
import io.kvcache.server.config.RecomputeConfig;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Chunks of a sequence that are on disk, read one after another by clients that look them up
/// first.
@Timeout(300)
final class PrefetchedValuesTest {

    @TempDir
    private Path folder = Path.of("");

    private DiskTestServer start(boolean prefetch) throws IOException {
        DiskTestServer server = new DiskTestServer(folder, prefetch, RecomputeConfig.defaults());
        server.fill(DiskTestServer::chunk);
        return server;
    }

    private static void readByResp(DiskTestServer server) throws IOException {
        try (Socket socket = server.connect()) {
            for (int number = 0; number < VALUES; number++) {
                socket.getOutputStream().write(ascii("EXISTS " + chunk(number) + "\r\n"));
                assertThat(socket.getInputStream().readNBytes(4)).isEqualTo(ascii(":1\r\n"));
            }
            for (int number = 0; number < VALUES; number++) {
                get(socket, chunk(number), value(number));
                awaitReads(server);
            }
        }
    }

    private static void readByLm(DiskTestServer server) throws IOException {
        try (Socket socket = server.connect()) {
            for (int number = 0; number < VALUES; number++) {
                socket.getOutputStream().write(lmRequest(2, chunk(number)));
                byte[] head = socket.getInputStream().readNBytes(36);
                ByteBuffer numbers = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
                assertThat(numbers.getInt()).isEqualTo(200);
                byte[] value = value(number);
                assertThat(numbers.getInt()).isEqualTo(value.length);
                assertThat(Arrays.equals(socket.getInputStream().readNBytes(value.length), value))
                        .as(chunk(number))
                        .isTrue();
                awaitReads(server);
            }
        }
    }

    /// Waits until the values that a request prefetches have arrived, also on a busy machine.
    private static void awaitReads(DiskTestServer server) {
        while (server.server().cache().diskStats().stream()
                .anyMatch(disk -> disk.readsWaiting() + disk.readsUnderWay() > 0)) {
            Pause.briefly();
        }
    }

    private static String stats(DiskTestServer server) throws IOException, InterruptedException {
        URI page = URI.create("http://127.0.0.1:" + server.port() + "/v1/stats");
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(HttpRequest.newBuilder(page).build(), BodyHandlers.ofString(StandardCharsets.UTF_8))
                    .body();
        }
    }

    @Test
    @Tag("slow")
    void givenASequenceOnDisk_whenReadOneByOne_thenChunksAreThereBeforeTheyAreAskedFor() throws Exception {
        try (DiskTestServer server = start(true)) {
            readByResp(server);
            PrefetchStats first = server.server().cache().prefetchStats();
            assertThat(first.used()).isPositive();
            readByLm(server);
            assertThat(server.server().cache().prefetchStats().used()).isGreaterThan(first.used());
            assertThat(stats(server)).contains("\"prefetched\":{\"begun\":");
            server.server().cache().validate();
        }
    }

    @Test
    @Tag("slow")
    void givenAServerThatWasNotToldTo_whenReadOneByOne_thenEachIsReadWhenAskedFor() throws Exception {
        try (DiskTestServer server = start(false)) {
            readByResp(server);
            assertThat(server.server().cache().prefetchStats().begun()).isZero();
        }
    }
}
