package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.ManualClock;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.Listener.ChannelSetup;
import io.kvcache.server.net.Listener.CidrAllowList;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import java.net.InetSocketAddress;
import java.security.KeyStore;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.KeyManagerFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A client that begins to speak TLS, stops, and stays.
final class PartialHandshakeTest {

    /// A record of a handshake that announces 512 bytes, of which a few come.
    private static final byte[] HALF = {22, 3, 1, 2, 0, 1, 0, 1, (byte) 252, 3, 3};

    private static SslContext context() throws Exception {
        KeyStore none = KeyStore.getInstance("PKCS12");
        none.load(null, null);
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(none, new char[0]);
        return SslContextBuilder.forServer(keys).build();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 11})
    void givenPartOfAHandshake_whenNothingFollows_thenItIsCutAndTheReasonCounted(int bytes) throws Exception {
        SslContext context = context();
        ConnectionRegistry connectionRegistry = EmbeddedConnection.registry(NetLimits.defaults(), new ManualClock());
        EmbeddedChannel channel = new EmbeddedChannel();
        channel.freezeTime();
        Listener.ListenerSpec listenerSpec = new Listener.ListenerSpec(
                new InetSocketAddress(0), List.of(), new CidrAllowList(List.of()), false, () -> context);
        ChannelSetup.setUp(channel, listenerSpec, Map.of(), connectionRegistry, connectionRegistry.addListener(false));
        if (bytes > 0) {
            channel.writeInbound(Unpooled.wrappedBuffer(HALF, 0, bytes));
        }
        assertThat(channel.isOpen()).isTrue();

        channel.advanceTimeBy(1, TimeUnit.MINUTES);
        channel.runScheduledPendingTasks();
        channel.runPendingTasks();

        assertThat(channel.isOpen()).isFalse();
        assertThat(connectionRegistry.closedCount(CloseReason.TLS_FAILED)).isEqualTo(1);
        assertThat(connectionRegistry.openCount()).isZero();
        channel.finishAndReleaseAll();
    }
}
