package io.kvcache.transport.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What a TCP connection does with frames that cannot be sent.
@Timeout(180)
final class TcpConnectionTest {

    private static final int PIECE_BYTES = 1 << 20;

    private static final FrameHandler DEAF = new FrameHandler() {
        @Override
        public void onMessage(FrameHeader header, BodyReader body) {}

        @Override
        public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
            throw new ProtocolException("nobody sends any");
        }

        @Override
        public void onClosed(DisconnectReason reason) {}
    };

    @Test
    void givenAPayloadWhoseMemoryIsGone_whenSent_thenNothingFollowsTheHalfOfIt() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                SocketChannel channel = SocketChannel.open(server.getLocalSocketAddress());
                Socket peer = server.accept();
                Arena whole = Arena.ofConfined()) {
            TcpConnection line = new TcpConnection(channel, frameSink -> DEAF);
            CompletableFuture<Long> heard = CompletableFuture.supplyAsync(() -> heard(peer));
            MemorySegment gone;
            try (Arena brief = Arena.ofConfined()) {
                gone = brief.allocate(4096);
            }
            Payload payload = Payload.of(List.of(whole.allocate(PIECE_BYTES), gone));
            OutboundFrame half = new BodyWriter().request(MessageType.FILL, 1, 0, payload);
            assertThatThrownBy(() -> line.send(half)).isInstanceOf(IllegalStateException.class);

            assertThat(line.isOpen()).isFalse();
            assertThat(line.send(new BodyWriter().request(MessageType.PING, 2, 0)))
                    .isFalse();
            assertThat(heard.get(60, TimeUnit.SECONDS))
                    .isLessThan((long) FrameHeader.BYTES + PIECE_BYTES + gone.byteSize());
        }
    }

    private static long heard(Socket peer) {
        long heard = 0;
        byte[] some = new byte[1 << 16];
        try (InputStream in = peer.getInputStream()) {
            for (int read = in.read(some); read >= 0; read = in.read(some)) {
                heard += read;
            }
        } catch (IOException reset) {
            return heard; // until then
        }
        return heard;
    }
}
