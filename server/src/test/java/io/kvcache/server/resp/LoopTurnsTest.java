package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.KeyOwnershipRules;
import io.kvcache.server.net.Listener;
import io.kvcache.server.net.Listener.CidrAllowList;
import io.kvcache.server.net.NettyTransport;
import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A request of many keys and another client, on one loop and over sockets.
final class LoopTurnsTest {

    private static final int KEYS = 8192;
    private static final String PONG = "+PONG\r\n";

    /// The rules are asked once for each key, on the loop: a clock of how far the request has come.
    private final AtomicInteger asked = new AtomicInteger();

    private Socket other = new Socket();
    private int answeredBytes;

    @ParameterizedTest
    @EnumSource(
            value = TransportKind.class,
            names = {"AUTO", "NIO"})
    void givenAHintOfManyKeys_whenAnotherClientAsksMeanwhile_thenItIsAnsweredBeforeTheEnd(TransportKind kind)
            throws Exception {
        NettyTransport transport = NettyTransport.open(kind, 1);
        try (EmbeddedRespServer resp = new EmbeddedRespServer(this::rules);
                Listener listener = Listener.open(transport, spec(resp), resp.connectionRegistry());
                Socket client = new Socket(
                        InetAddress.getLoopbackAddress(), listener.address().getPort());
                Socket ping = new Socket(
                        InetAddress.getLoopbackAddress(), listener.address().getPort())) {
            other = ping;
            ask(ping);
            assertThat(read(ping, PONG.length())).isEqualTo(PONG);
            StringBuilder line = new StringBuilder("KV.HINT UNPIN");
            IntStream.range(0, KEYS).forEach(i -> line.append(" k").append(i));
            client.getOutputStream()
                    .write(EmbeddedRespServer.frame(line.toString().split(" ")));
            assertThat(read(client, 4)).isEqualTo(":0\r\n");
            assertThat(asked).hasValue(KEYS);
            assertThat(answeredBytes)
                    .as("of the other reply, before the last key")
                    .isEqualTo(PONG.length());
        } finally {
            transport.eventLoops().shutdownGracefully().awaitUninterruptibly();
        }
    }

    private KeyOwnershipRules rules() {
        int number = asked.incrementAndGet();
        try {
            if (number == KEYS / 8) {
                ask(other);
            } else if (number == KEYS) {
                answeredBytes = other.getInputStream().available();
            }
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
        return KeyOwnershipRules.NONE;
    }

    private static String read(Socket socket, int bytes) throws IOException {
        return new String(socket.getInputStream().readNBytes(bytes), StandardCharsets.US_ASCII);
    }

    private static void ask(Socket socket) throws IOException {
        socket.getOutputStream().write("PING\r\n".getBytes(StandardCharsets.US_ASCII));
    }

    private static Listener.ListenerSpec spec(EmbeddedRespServer resp) {
        return new Listener.ListenerSpec(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                List.of(resp.protocol()),
                new CidrAllowList(List.of()),
                false,
                null);
    }
}
