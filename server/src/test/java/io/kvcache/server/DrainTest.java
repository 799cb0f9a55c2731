package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.contract.Pause;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.server.CacheServer.ShutdownResult;
import io.kvcache.server.config.DiskTierConfig;
import io.kvcache.server.config.DiskTierConfig.DiskConfig;
import io.kvcache.server.config.RecomputeConfig;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport.TransportKind;
import io.kvcache.tiers.options.OnIncompatible;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// A server that goes down, and one that is full.
final class DrainTest {

    @TempDir
    private Path folder = Path.of("");

    private static Socket connect(TestServer server) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port());
        socket.setSoTimeout(60_000);
        return socket;
    }

    private static String ask(Socket socket, String request, int replyBytes) throws IOException {
        socket.getOutputStream().write(request.getBytes(US_ASCII));
        return new String(socket.getInputStream().readNBytes(replyBytes), US_ASCII);
    }

    @Test
    void givenARequestThatHasBegun_whenDrained_thenItIsAnsweredAndIdleOnesAreClosed() throws Exception {
        try (TestServer server = TestServer.start(TransportKind.AUTO);
                Socket idle = connect(server);
                Socket busy = connect(server)) {
            assertThat(ask(idle, "PING\r\n", 7)).isEqualTo("+PONG\r\n");
            assertThat(ask(busy, "PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhal", 7))
                    .isEqualTo("+PONG\r\n");

            CompletableFuture<Boolean> drained =
                    CompletableFuture.supplyAsync(() -> server.server().drain(Duration.ofSeconds(60)));

            assertThat(idle.getInputStream().read()).isEqualTo(-1);
            assertThat(ask(busy, "ve\r\n", 5)).isEqualTo("+OK\r\n");
            assertThat(new DataInputStream(busy.getInputStream()).read()).isEqualTo(-1);
            assertThat(drained.get()).isTrue();
            assertThatThrownBy(() -> connect(server)).isInstanceOf(IOException.class);
        }
    }

    @Test
    void givenAServerThatLeaves_whenAsked_thenItIsNotReadyAndServesNewConnections() throws Exception {
        try (TestServer server = TestServer.start(TransportKind.AUTO)) {
            server.server().announceShutdown(Duration.ZERO);

            try (Socket late = connect(server)) {
                String reply = ask(late, "GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n", 12);
                assertThat(reply).isEqualTo("HTTP/1.1 503");
            }
            try (Socket late = connect(server)) {
                assertThat(ask(late, "SET k v\r\nGET k\r\n", 12)).isEqualTo("+OK\r\n$1\r\nv\r\n");
            }
            server.server().drain(Duration.ofSeconds(60));
            assertThatThrownBy(() -> connect(server)).isInstanceOf(IOException.class);
        }
    }

    @Test
    void givenARequestThatNeverEnds_whenDrained_thenItIsCutOffInTime() throws Exception {
        try (TestServer server = TestServer.start(TransportKind.AUTO);
                Socket busy = connect(server)) {
            assertThat(ask(busy, "PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhal", 7))
                    .isEqualTo("+PONG\r\n");

            assertThat(server.server().drain(Duration.ofMillis(50))).isFalse();
            assertThat(busy.getInputStream().read()).isEqualTo(-1);
        }
    }

    private TestServer onDisk() {
        DiskTierConfig disks = new DiskTierConfig(
                List.of(new DiskConfig("disks.0", folder, 256L << 20, 0, 0, OnIncompatible.REFUSE, true)),
                List.of(),
                AdmissionKind.SECOND_HIT,
                Duration.ofSeconds(60),
                false,
                RecomputeConfig.defaults());
        return TestServer.start(TransportKind.AUTO, NetLimits.defaults(), disks);
    }

    @Test
    @Timeout(300)
    void givenARequestThatDoesNotGoOn_whenStopped_thenWhatOthersStoredGetsToDiskBesideIt() throws Exception {
        try (TestServer server = onDisk();
                Socket busy = connect(server);
                Socket other = connect(server)) {
            assertThat(ask(other, "MSET a 1 b 22\r\n", 5)).isEqualTo("+OK\r\n");
            assertThat(ask(busy, "PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhal", 7))
                    .isEqualTo("+PONG\r\n");
            assertThat(server.server().cache().unsavedBytes())
                    .as("not worth a write yet")
                    .isPositive();

            CompletableFuture<ShutdownResult> stopped =
                    CompletableFuture.supplyAsync(() -> server.server().stop(Duration.ofMinutes(10)));

            while (server.server().cache().unsavedBytes() > 0) {
                Pause.briefly();
            }
            assertThat(stopped).isNotDone();
            assertThat(ask(busy, "ve\r\n", 5)).isEqualTo("+OK\r\n");
            assertThat(stopped.get()).isEqualTo(new ShutdownResult(true, true, 0));
        }
        try (TestServer server = onDisk();
                Socket socket = connect(server)) {
            while (server.server().cache().isRecovering()) {
                Pause.briefly();
            }
            String values = "*3\r\n$1\r\n1\r\n$2\r\n22\r\n$5\r\nhalve\r\n";
            assertThat(ask(socket, "MGET a b k\r\n", values.length())).isEqualTo(values);
        }
    }
}
