package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.ManualTime;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelPipeline;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

final class ConnectionsTest {

    private final ManualTime time = new ManualTime();
    private final Connections connections =
            new Connections(new NetLimits(10, Duration.ofMinutes(1), Duration.ofSeconds(10)), time);

    /// A protocol of one handler.
    private record Spoken(Function<Connection, ChannelHandler> handler) implements Protocol {

        @Override
        public ProtocolKind kind() {
            return ProtocolKind.RESP;
        }

        @Override
        public void install(ChannelPipeline pipeline, Connection connection) {
            pipeline.addLast(handler.apply(connection));
        }
    }

    private static final Protocol TEN_BYTES = new Spoken(TenBytes::new);
    private static final Protocol UNREAD = new Spoken(Unread::new);

    /// Every request is ten bytes.
    private static final class TenBytes extends ChannelInboundHandlerAdapter {

        private final Connection connection;
        private int bytes;

        TenBytes(Connection connection) {
            this.connection = connection;
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            connection.requestBegins();
            bytes += ((ByteBuf) message).readableBytes();
            ((ByteBuf) message).release();
            if (bytes % 10 == 0) {
                assertThat(connection.requestEnds()).isFalse();
            }
        }
    }

    /// Answers one request with more and more bytes that nobody takes.
    private static final class Unread extends ChannelInboundHandlerAdapter {

        private final Connection connection;
        private boolean answered;

        Unread(Connection connection) {
            this.connection = connection;
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ((ByteBuf) message).release();
            if (!answered) {
                answered = !connection.requestEnds();
            }
            Channel channel = context.channel(); // beside the wire, which takes all
            channel.unsafe().write(channel.alloc().buffer().writeZero(1000), channel.voidPromise());
        }
    }

    private void pass(int seconds) {
        for (int i = 0; i < seconds; i++) {
            time.pass(Duration.ofSeconds(1));
            connections.tick();
        }
    }

    @Test
    void givenAConnectionThatSaysNothing_whenTheIdleTimeIsOver_thenItIsClosed() {
        try (Wire wire = new Wire(TEN_BYTES, connections)) {
            pass(59);
            assertThat(wire.isOpen()).isTrue();
            pass(1);
            assertThat(wire.isOpen()).isFalse();
        }
        assertThat(connections.closedCount(CloseReason.IDLE)).isEqualTo(1);
    }

    @Test
    void givenARequestThatDrips_whenTheStallTimeIsOver_thenItIsClosed() {
        try (Wire wire = new Wire(TEN_BYTES, connections)) {
            for (int i = 0; i < 9 && wire.isOpen(); i++) {
                wire.send("x");
                pass(2);
            }
            assertThat(wire.isOpen()).isFalse();
        }
        assertThat(connections.closedCount(CloseReason.STALLED_REQUEST)).isEqualTo(1);
    }

    @Test
    void givenAReplyThatIsSmallAndNotRead_whenTheStallTimeIsOver_thenTheConnectionIsClosed() {
        try (Wire wire = new Wire(UNREAD, connections)) {
            wire.send("x");
            pass(9);
            assertThat(wire.isOpen()).isTrue();
            pass(3);
            assertThat(wire.isOpen()).isFalse();
        }
        assertThat(connections.closedCount(CloseReason.SLOW_READER)).isEqualTo(1);
    }

    @Test
    void givenAReplyThatIsReadALittleNowAndThen_whenOthersAreRefusedBecauseOfIt_thenTheConnectionIsClosed() {
        AtomicLong refused = new AtomicLong();
        Connections pressed = new Connections(
                new NetLimits(10, Duration.ofMinutes(1), Duration.ofSeconds(10)),
                time,
                RequestTimer.NONE,
                refused::get);
        try (Wire wire = new Wire(UNREAD, pressed)) {
            for (int i = 0; i < 30; i++) {
                wire.send("x"); // what is unread changes with each
                time.pass(Duration.ofSeconds(1));
                pressed.tick();
            }
            assertThat(wire.isOpen()).isTrue();
            refused.incrementAndGet();
            pressed.tick();
            assertThat(wire.isOpen()).isFalse();
        }
        assertThat(pressed.closedCount(CloseReason.SLOW_READER)).isEqualTo(1);
    }

    @Test
    void givenRequestsThatComeAndEnd_whenTimePasses_thenTheConnectionStays() {
        try (Wire wire = new Wire(TEN_BYTES, connections)) {
            for (int i = 0; i < 20; i++) {
                wire.send("0123456789");
                pass(30);
            }
            assertThat(wire.isOpen()).isTrue();
        }
        assertThat(connections.closedCount(CloseReason.CLIENT)).isEqualTo(1);
    }

    @Test
    void givenALargeRequestThatGoesOn_whenItTakesLong_thenTheConnectionStays() {
        try (Wire wire = new Wire(TEN_BYTES, connections)) {
            for (int i = 0; i < 20; i++) {
                wire.send(new byte[50_001]);
                pass(9);
            }
            assertThat(wire.isOpen()).isTrue();
        }
    }
}
