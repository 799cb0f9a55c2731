package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.ManualClock;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry.RequestTimer;
import io.kvcache.server.net.Listener.ChannelSetup;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.embedded.EmbeddedChannel;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

final class ConnectionRegistryTest {

    private final ManualClock time = new ManualClock();
    private final ConnectionRegistry connectionRegistry =
            EmbeddedConnection.registry(new NetLimits(10, Duration.ofMinutes(1), Duration.ofSeconds(10)), time);

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
            connection.beginRequest();
            bytes += ((ByteBuf) message).readableBytes();
            ((ByteBuf) message).release();
            if (bytes % 10 == 0) {
                assertThat(connection.endRequest()).isFalse();
            }
        }
    }

    /// Answers one request with more and more bytes that the client does not read.
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
                answered = !connection.endRequest();
            }
            Channel channel = context.channel(); // beside the wire, which takes all
            channel.unsafe().write(channel.alloc().buffer().writeZero(1000), channel.voidPromise());
        }
    }

    private void pass(int seconds) {
        for (int i = 0; i < seconds; i++) {
            time.advance(Duration.ofSeconds(1));
            connectionRegistry.tick();
        }
    }

    @Test
    void givenAConnectionThatSaysNothing_whenTheIdleTimeIsOver_thenItIsClosed() {
        try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(TEN_BYTES, connectionRegistry)) {
            pass(59);
            assertThat(embeddedConnection.isOpen()).isTrue();
            pass(1);
            assertThat(embeddedConnection.isOpen()).isFalse();
        }
        assertThat(connectionRegistry.closedCount(CloseReason.IDLE)).isEqualTo(1);
    }

    @Test
    void givenARequestThatDrips_whenTheStallTimeIsOver_thenItIsClosed() {
        try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(TEN_BYTES, connectionRegistry)) {
            for (int i = 0; i < 9 && embeddedConnection.isOpen(); i++) {
                embeddedConnection.send("x");
                pass(2);
            }
            assertThat(embeddedConnection.isOpen()).isFalse();
        }
        assertThat(connectionRegistry.closedCount(CloseReason.STALLED_REQUEST)).isEqualTo(1);
    }

    @Test
    void givenAReplyThatIsSmallAndNotRead_whenTheStallTimeIsOver_thenTheConnectionIsClosed() {
        try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(UNREAD, connectionRegistry)) {
            embeddedConnection.send("x");
            pass(9);
            assertThat(embeddedConnection.isOpen()).isTrue();
            pass(3);
            assertThat(embeddedConnection.isOpen()).isFalse();
        }
        assertThat(connectionRegistry.closedCount(CloseReason.SLOW_READER)).isEqualTo(1);
    }

    @Test
    void givenAReplyThatIsReadALittleNowAndThen_whenOthersAreRefusedBecauseOfIt_thenTheConnectionIsClosed() {
        AtomicLong refused = new AtomicLong();
        ConnectionRegistry pressed = EmbeddedConnection.registry(
                new NetLimits(10, Duration.ofMinutes(1), Duration.ofSeconds(10)),
                time,
                RequestTimer.NONE,
                refused::get);
        try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(UNREAD, pressed)) {
            for (int i = 0; i < 30; i++) {
                embeddedConnection.send("x"); // what is unread changes with each
                time.advance(Duration.ofSeconds(1));
                pressed.tick();
            }
            assertThat(embeddedConnection.isOpen()).isTrue();
            refused.incrementAndGet();
            pressed.tick();
            assertThat(embeddedConnection.isOpen()).isFalse();
        }
        assertThat(pressed.closedCount(CloseReason.SLOW_READER)).isEqualTo(1);
    }

    @Test
    void givenRequestsThatComeAndEnd_whenTimePasses_thenTheConnectionStays() {
        try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(TEN_BYTES, connectionRegistry)) {
            for (int i = 0; i < 20; i++) {
                embeddedConnection.send("0123456789");
                pass(30);
            }
            assertThat(embeddedConnection.isOpen()).isTrue();
        }
        assertThat(connectionRegistry.closedCount(CloseReason.CLIENT)).isEqualTo(1);
    }

    @Test
    void givenALargeRequestThatGoesOn_whenItTakesLong_thenTheConnectionStays() {
        try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(TEN_BYTES, connectionRegistry)) {
            for (int i = 0; i < 20; i++) {
                embeddedConnection.send(new byte[(64 << 10) * 9 + 1]);
                pass(9);
            }
            assertThat(embeddedConnection.isOpen()).isTrue();
        }
    }

    /// A client at an address of its own.
    private static final class Client implements AutoCloseable {

        private final EmbeddedChannel channel;

        Client(String address, ConnectionRegistry connectionRegistry, ConnectionRegistry.ListenerSlots listenerSlots) {
            SocketAddress remote = new InetSocketAddress(InetAddress.ofLiteral(address), 1);
            channel = new EmbeddedChannel() {
                @Override
                protected SocketAddress remoteAddress0() {
                    return remote;
                }
            };
            ChannelSetup.setUp(channel, Map.of(ProtocolKind.RESP, TEN_BYTES), connectionRegistry, listenerSlots);
        }

        void send(String text) {
            channel.writeInbound(Unpooled.copiedBuffer(text, StandardCharsets.US_ASCII));
        }

        boolean isOpen() {
            channel.runPendingTasks();
            return channel.isOpen();
        }

        String heard() {
            ByteBuf told = channel.readOutbound();
            return told == null ? "" : told.toString(StandardCharsets.US_ASCII);
        }

        @Override
        public void close() {
            channel.finishAndReleaseAll();
        }
    }

    private static final String FLOODER = "10.0.0.1";
    private static final String OTHER = "10.0.0.2";

    private List<Client> flood(ConnectionRegistry.ListenerSlots listenerSlots, int clients) {
        List<Client> all = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            all.add(new Client(FLOODER, connectionRegistry, listenerSlots));
        }
        return all;
    }

    @Test
    void givenIdleConnectionsAtAllPlaces_whenAnotherAddressConnects_thenTheIdlestOfTheLargestGivesWay() {
        ConnectionRegistry.ListenerSlots listenerSlots = connectionRegistry.addListener(false);
        Client served = new Client(OTHER, connectionRegistry, listenerSlots);
        List<Client> flood = flood(listenerSlots, 9);
        flood.getFirst().send("0123456789"); // is no more idle than the others, but has asked something
        pass(2);

        Client next = new Client(OTHER, connectionRegistry, listenerSlots);
        next.send("0123456789");

        assertThat(next.isOpen()).isTrue();
        assertThat(next.heard()).isEmpty();
        assertThat(served.isOpen()).isTrue();
        assertThat(flood)
                .extracting(Client::isOpen)
                .containsExactly(true, false, true, true, true, true, true, true, true);
        assertThat(connectionRegistry.closedCount(CloseReason.GAVE_WAY)).isEqualTo(1);
        assertThat(connectionRegistry.openCount()).isEqualTo(10);
    }

    @Test
    void givenAFloodThatGoesOn_whenItFillsAllPlaces_thenItEndsItsOwnConnectionsAlone() {
        ConnectionRegistry.ListenerSlots listenerSlots = connectionRegistry.addListener(false);
        Client served = new Client(OTHER, connectionRegistry, listenerSlots);
        pass(2);

        for (int i = 0; i < 100; i++) {
            flood(listenerSlots, 1);
            pass(2);
        }

        assertThat(served.isOpen()).isFalse(); // its idle minute was over
        assertThat(connectionRegistry.closedCount(CloseReason.IDLE)).isPositive();
        assertThat(connectionRegistry.closedCount(CloseReason.TOO_MANY)).isZero();
    }

    @Test
    void givenBusyConnectionsAtAllPlaces_whenOneMoreComes_thenItIsToldAndTheOthersStay() {
        ConnectionRegistry.ListenerSlots listenerSlots = connectionRegistry.addListener(false);
        List<Client> busy = flood(listenerSlots, 10);
        busy.forEach(each -> each.send("0123456789"));

        Client next = new Client(OTHER, connectionRegistry, listenerSlots);
        next.send("0123456789");

        assertThat(next.heard()).isEqualTo("-ERR max number of clients reached\r\n");
        assertThat(next.isOpen()).isFalse();
        assertThat(busy).allSatisfy(each -> assertThat(each.isOpen()).isTrue());
        assertThat(connectionRegistry.closedCount(CloseReason.TOO_MANY)).isEqualTo(1);
    }

    @Test
    void givenAListenerThatIsFlooded_whenAnotherListenerIsAsked_thenItHasPlacesOfItsOwn() {
        ConnectionRegistry.ListenerSlots flooded = connectionRegistry.addListener(false);
        ConnectionRegistry.ListenerSlots quiet = connectionRegistry.addListener(false);
        List<Client> busy = flood(flooded, 12);
        busy.forEach(each -> each.send("0123456789"));

        Client next = new Client(FLOODER, connectionRegistry, quiet);
        next.send("0123456789");

        assertThat(next.heard()).isEmpty();
        assertThat(next.isOpen()).isTrue();
    }

    @Test
    void givenManyWithoutAPlace_whenOneMoreComes_thenTheOldestOfThemEnds() {
        ConnectionRegistry.ListenerSlots listenerSlots = connectionRegistry.addListener(false);
        flood(listenerSlots, 10).forEach(each -> each.send("0123456789"));
        List<Client> spare = flood(listenerSlots, ConnectionRegistry.HEALTH_CHECK_SLOTS);

        Client next = new Client(OTHER, connectionRegistry, listenerSlots);

        assertThat(spare.getFirst().isOpen()).isFalse();
        assertThat(spare.getLast().isOpen()).isTrue();
        assertThat(next.isOpen()).isTrue();
        pass(5);
        assertThat(next.isOpen()).isFalse();
    }

    @Test
    void givenAListenerThatAsks_whenAClientDoesNotSayWhoItIs_thenItIsClosedAfterFiveSeconds() {
        ConnectionRegistry.ListenerSlots listenerSlots = connectionRegistry.addListener(true);
        Client silent = new Client(OTHER, connectionRegistry, listenerSlots);
        Client speaks = new Client(OTHER, connectionRegistry, listenerSlots);
        speaks.send("0123456789");
        pass(4);
        assertThat(silent.isOpen()).isTrue();

        pass(1);

        assertThat(silent.isOpen()).isFalse();
        assertThat(speaks.isOpen()).isFalse();
        assertThat(connectionRegistry.closedCount(CloseReason.UNAUTHENTICATED)).isEqualTo(2);
    }

    @Test
    void givenALargeRequestBelowTheLeastRate_whenTheStallTimeIsOver_thenItIsClosedWithAWord() {
        try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(TEN_BYTES, connectionRegistry)) {
            List<String> words = new ArrayList<>();
            Connection stalled = connectionRegistry.openConnections().getFirst();
            stalled.onAbort(text -> {
                words.add(text);
                stalled.closeAfterReplies(CloseReason.STALLED_REQUEST);
            });
            for (int i = 0; i < 3 && embeddedConnection.isOpen(); i++) {
                embeddedConnection.send(new byte[33_001]);
                pass(9);
            }
            assertThat(embeddedConnection.isOpen()).isFalse();
            assertThat(words)
                    .containsExactly("the request came slower than 64 KiB/s for 10 s (limits.stall);"
                            + " the connection is closed");
        }
        assertThat(connectionRegistry.closedCount(CloseReason.STALLED_REQUEST)).isEqualTo(1);
    }
}
