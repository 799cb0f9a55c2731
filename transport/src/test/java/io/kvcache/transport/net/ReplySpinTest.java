package io.kvcache.transport.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.transport.net.TcpConnection.ReplySpin;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIf;

@DisabledIf(value = "hasOneProcessor", disabledReason = "with one processor nothing spins")
final class ReplySpinTest {

    private SocketChannel client;
    private SocketChannel server;
    private ReplySpin spin;

    static boolean hasOneProcessor() {
        return Runtime.getRuntime().availableProcessors() < 2;
    }

    @BeforeEach
    void connect() throws IOException {
        try (ServerSocketChannel listening =
                ServerSocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))) {
            client = SocketChannel.open(listening.getLocalAddress());
            server = listening.accept();
        }
        spin = Objects.requireNonNull(ReplySpin.of(client), "within this host");
    }

    @AfterEach
    void close() throws IOException {
        client.close();
        server.close();
    }

    private void awaitInVain() {
        while (spin.callsToSkip() == 0) {
            spin.awaitBytes();
        }
    }

    private int skipped() {
        int skipped = 0;
        for (; spin.callsToSkip() > 0; skipped++) {
            spin.awaitBytes();
        }
        return skipped;
    }

    @Test
    void givenBytes_whenAwaited_thenTheyAreStillThere() throws IOException {
        server.write(ByteBuffer.allocate(3));
        while (client.socket().getInputStream().available() < 3) {
            Thread.onSpinWait();
        }
        spin.awaitBytes();
        assertThat(spin.callsToSkip()).isZero();
        assertThat(client.read(ByteBuffer.allocate(9))).isEqualTo(3);
    }

    @Test
    void givenNoBytes_whenAwaitedAgainAndAgain_thenItPausesLongerUpToABound() {
        for (int expected = 2; expected <= 64; expected *= 2) {
            awaitInVain();
            assertThat(skipped()).isEqualTo(expected);
        }
        awaitInVain();
        assertThat(skipped()).isEqualTo(64);
    }

    @Test
    void givenAClosedConnection_whenAwaited_thenItReturnsAndPauses() throws IOException {
        client.close();
        awaitInVain();
        assertThat(spin.callsToSkip()).isEqualTo(64);
    }
}
