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
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What a TCP connection does with frames that cannot be sent, and with interrupts.
@Timeout(180)
final class TcpConnectionTest {

    private static final int PIECE_BYTES = 1 << 20;
    private static final int SENDERS = 3;
    private static final Executor OWN_THREAD = work -> Thread.ofPlatform().start(work);
    private static final int FRAMES = 8;

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

    /// As the JDK does when a thread that sends is interrupted, before that thread can say that the connection
    /// is over.
    @Test
    void givenASocketClosedBehindItsBack_whenPumped_thenItsHandlerHearsOfTheEnd() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                SocketChannel channel = SocketChannel.open(server.getLocalSocketAddress());
                Socket peer = server.accept()) {
            AtomicReference<DisconnectReason> closed = new AtomicReference<>();
            TcpConnection line = new TcpConnection(channel, frameSink -> new ClosingHandler(channel, closed));
            peer.getOutputStream().write(pingFrame());
            assertThat(line.pump()).isFalse();
            assertThat(closed.get()).isEqualTo(DisconnectReason.BROKEN);
        }
    }

    /// Closes the socket in the midst of a pump.
    private record ClosingHandler(SocketChannel channel, AtomicReference<DisconnectReason> closed)
            implements FrameHandler {

        @Override
        public void onMessage(FrameHeader header, BodyReader body) throws ProtocolException {
            try {
                channel.close();
            } catch (IOException failed) {
                throw new ProtocolException(failed.toString());
            }
        }

        @Override
        public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
            throw new ProtocolException("nobody sends any");
        }

        @Override
        public void onClosed(DisconnectReason reason) {
            closed.set(reason);
        }
    }

    private static byte[] pingFrame() {
        ByteBuffer frame = new BodyWriter().request(MessageType.PING, 1, 0).head();
        byte[] bytes = new byte[frame.remaining()];
        frame.duplicate().get(bytes);
        return bytes;
    }

    @Test
    void givenASharedConnection_whenSendersAreInterrupted_thenEachByteArrives() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                SocketChannel channel = SocketChannel.open(server.getLocalSocketAddress());
                Socket peer = server.accept()) {
            TcpConnection line = new TcpConnection(channel, frameSink -> DEAF);
            line.share();
            interruptSenders(line, peer);
        }
    }

    /// Has threads send more than the kernel takes, interrupts them while they wait for room, and counts what
    /// arrives.
    private static void interruptSenders(TcpConnection line, Socket peer) throws Exception {
        CompletableFuture<Boolean> pumped = CompletableFuture.supplyAsync(line::pump, OWN_THREAD);
        AtomicInteger sent = new AtomicInteger();
        List<Thread> senders = IntStream.range(0, SENDERS)
                .mapToObj(i -> Thread.ofPlatform().unstarted(() -> send(line, sent)))
                .toList();
        senders.forEach(Thread::start);
        AtomicBoolean ended = new AtomicBoolean();
        Thread interrupter = Thread.ofPlatform().start(() -> {
            while (!ended.get()) {
                senders.forEach(Thread::interrupt);
                LockSupport.parkNanos(50_000);
            }
        });
        // The kernel's buffers are full then, and the senders have been interrupted while they waited.
        while (line.stalledNanos() < TimeUnit.MILLISECONDS.toNanos(20)) {
            LockSupport.parkNanos(1_000_000);
        }
        long wanted = (long) SENDERS * FRAMES * (FrameHeader.BYTES + PIECE_BYTES);
        CompletableFuture<Long> heard = CompletableFuture.supplyAsync(() -> heard(peer, wanted), OWN_THREAD);
        for (Thread sender : senders) {
            sender.join();
        }
        assertThat(heard.get(120, TimeUnit.SECONDS)).isEqualTo(wanted);
        ended.set(true);
        interrupter.join();
        assertThat(sent.get()).isEqualTo(SENDERS * FRAMES);
        assertThat(line.isOpen()).isTrue();
        peer.close();
        assertThat(pumped.get(60, TimeUnit.SECONDS)).isFalse();
    }

    private static void send(TcpConnection line, AtomicInteger sent) {
        try (Arena arena = Arena.ofConfined()) {
            Payload payload = Payload.of(List.of(arena.allocate(PIECE_BYTES)));
            for (int i = 0; i < FRAMES; i++) {
                sent.addAndGet(line.send(new BodyWriter().request(MessageType.FILL, i, 0, payload)) ? 1 : 0);
            }
        }
    }

    private static long heard(Socket peer, long wanted) {
        long heard = 0;
        byte[] some = new byte[1 << 16];
        try {
            InputStream in = peer.getInputStream();
            int read = 0;
            while (read >= 0 && heard < wanted) {
                read = in.read(some);
                heard += read;
            }
        } catch (IOException reset) {
            return heard; // until then
        }
        return heard;
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
