package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.spi.Clock;
import io.kvcache.server.net.ConnectionRegistry.RequestTimer;
import io.kvcache.server.net.Listener.ChannelSetup;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.function.LongSupplier;

/// A connection without a network: what is sent is handled at once, on the caller's thread. Time on its loop
/// stands still, until a test moves it, so that nothing that waits gives up because the machine is slow.
public final class EmbeddedConnection implements AutoCloseable {

    private final UnpooledByteBufAllocator allocator = new UnpooledByteBufAllocator(false);
    private final EmbeddedChannel channel = new EmbeddedChannel();
    private final ByteArrayOutputStream received = new ByteArrayOutputStream();
    private final ConnectionRegistry connectionRegistry;

    public EmbeddedConnection(Protocol protocol, Clock clock) {
        this(protocol, registry(NetLimits.defaults(), clock));
    }

    /// Connections whose requests nothing times or logs.
    public static ConnectionRegistry registry(NetLimits limits, Clock clock) {
        return registry(limits, clock, RequestTimer.NONE, () -> 0);
    }

    public static ConnectionRegistry registry(
            NetLimits limits, Clock clock, RequestTimer timer, LongSupplier throttledReads) {
        return new ConnectionRegistry(limits, clock, timer, new SlowRequestLog(Duration.ZERO, clock), throttledReads);
    }

    public EmbeddedConnection(Protocol protocol, ConnectionRegistry connectionRegistry) {
        this(Map.of(protocol.kind(), protocol), connectionRegistry);
    }

    /// @param protocols to be told by the first bytes, when they are several
    public EmbeddedConnection(Map<ProtocolKind, Protocol> protocols, ConnectionRegistry connectionRegistry) {
        this.connectionRegistry = connectionRegistry;
        channel.freezeTime();
        channel.config().setAllocator(allocator);
        channel.pipeline().addLast(new Receiver());
        ChannelSetup.setUp(channel, protocols, connectionRegistry, connectionRegistry.addListener(false));
    }

    public ConnectionRegistry connectionRegistry() {
        return connectionRegistry;
    }

    public EmbeddedChannel channel() {
        return channel;
    }

    /// Sends bytes as one read of the server.
    public EmbeddedConnection send(byte[] bytes) {
        if (channel.isOpen()) {
            channel.writeInbound(allocator.directBuffer(bytes.length + 1).writeBytes(bytes));
            channel.runPendingTasks();
        }
        return this;
    }

    public EmbeddedConnection send(String text) {
        return send(text.getBytes(StandardCharsets.ISO_8859_1));
    }

    /// Returns the bytes that came back since the last call.
    public byte[] bytes() {
        byte[] all = received.toByteArray();
        received.reset();
        return all;
    }

    public String text() {
        return new String(bytes(), StandardCharsets.ISO_8859_1);
    }

    /// Sends and answers what comes back.
    public String ask(String text) {
        return send(text).text();
    }

    public boolean isOpen() {
        return channel.isOpen();
    }

    /// Ends the connection; all its buffers must be free then.
    @Override
    public void close() {
        channel.finishAndReleaseAll();
        long leaked = allocator.metric().usedDirectMemory() + allocator.metric().usedHeapMemory();
        assertThat(leaked).as("bytes of buffers that were not released").isZero();
    }

    /// Takes what is written while its memory is still held, as a network does.
    private final class Receiver extends ChannelOutboundHandlerAdapter {
        @Override
        public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
            ByteBuf bytes = (ByteBuf) message;
            byte[] copy = new byte[bytes.readableBytes()];
            bytes.readBytes(copy);
            received.writeBytes(copy);
            bytes.release();
            promise.trySuccess();
        }
    }
}
