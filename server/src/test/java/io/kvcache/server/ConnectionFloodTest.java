package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import com.sun.management.UnixOperatingSystemMXBean;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// Thousands of clients that connect and say nothing.
@EnabledOnOs(OS.LINUX)
@Timeout(300)
@Tag("slow")
final class ConnectionFloodTest {

    private static final int PLACES = 1500;
    private static final int FLOOD = 2500;

    private static String ask(TestServer server, String from, String request) throws IOException {
        try (Socket socket = new Socket()) {
            socket.bind(new InetSocketAddress(InetAddress.ofLiteral(from), 0));
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), server.port()));
            socket.setSoTimeout(60_000);
            socket.getOutputStream().write(request.getBytes(US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), US_ASCII);
        } catch (IOException reset) {
            return "";
        }
    }

    @Test
    void givenIdleConnectionsAtAllPlaces_whenAnotherClientComes_thenItIsServedAndHealthIsAnswered() throws Exception {
        assumeThat(ManagementFactory.getOperatingSystemMXBean()).isInstanceOf(UnixOperatingSystemMXBean.class);
        var system = (UnixOperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        assumeThat(system.getMaxFileDescriptorCount()).isGreaterThan(2L * FLOOD + 1000);
        NetLimits limits = new NetLimits(PLACES, Duration.ZERO, Duration.ofMinutes(5));
        List<Socket> flood = new ArrayList<>();
        try (TestServer server = TestServer.start(TransportKind.AUTO, limits)) {
            for (int i = 0; i < FLOOD; i++) {
                flood.add(new Socket(InetAddress.getLoopbackAddress(), server.port()));
            }
            String health = "GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

            assertThat(ask(server, "127.0.0.2", health)).endsWith("live\n");
            String answer = ask(server, "127.0.0.2", "PING\r\nQUIT\r\n");
            while (!answer.startsWith("+PONG")) { // those of the flood that came within a second are not idle yet
                answer = ask(server, "127.0.0.2", "PING\r\nQUIT\r\n");
            }
            assertThat(ask(server, "127.0.0.2", health)).endsWith("live\n");
        } finally {
            for (Socket socket : flood) {
                socket.close();
            }
        }
    }
}
