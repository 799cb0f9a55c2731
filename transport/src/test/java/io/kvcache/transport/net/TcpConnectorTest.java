package io.kvcache.transport.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.BufferUnderflowException;
import java.nio.channels.SocketChannel;
import java.security.cert.CertificateException;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLHandshakeException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// Whom a TCP connection is with.
final class TcpConnectorTest {

    @Test
    @EnabledOnOs(OS.LINUX) // elsewhere a socket may not be able to connect to itself
    void givenAConnectionThatMetItself_whenLookedAt_thenRefusedAsIfNobodyListened() throws IOException {
        try (SocketChannel channel = SocketChannel.open()) {
            channel.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            channel.connect(channel.getLocalAddress());
            assertThatThrownBy(() -> TcpConnector.rejectSelfConnection(channel))
                    .isInstanceOf(ConnectException.class)
                    .hasMessageContaining("connection refused: no server listens at ");
        }
    }

    @Test
    void givenAConnectionToAnother_whenLookedAt_thenItIsOne() throws IOException {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                SocketChannel channel = SocketChannel.open(server.getLocalSocketAddress())) {
            TcpConnector.rejectSelfConnection(channel);
        }
    }

    @Test
    void givenCausesWithoutAMessage_whenTheReasonIsSaid_thenItIsTheInnermostThatHasOne() {
        SSLException untrusted = new SSLHandshakeException("outer");
        untrusted.initCause(new CertificateException("no name matching host", new BufferUnderflowException()));

        assertThat(TcpConnector.reason(untrusted)).isEqualTo("no name matching host");
        assertThat(TcpConnector.reason(new SSLException((String) null))).isEqualTo("javax.net.ssl.SSLException");
    }
}
