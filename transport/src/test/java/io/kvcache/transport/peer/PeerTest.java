package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.StreamHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// When one peer is connected to, with the connecting in the test's hands.
@Timeout(300)
final class PeerTest {

    private static final Namespace SPACE = Namespace.of("peer", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
    private static final long PAUSE = 100_000_000;

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(32 << 20)
            .prefaultInBackground(false)
            .build();
    private final Deque<Runnable> connecting = new ArrayDeque<>();
    private final List<ClusterConnection> connected = new ArrayList<>();
    private final Logger log = Logger.getLogger(Peer.class.getName());
    private TcpEndpoint endpoint;
    private Peer peer;
    private boolean refused;
    private long now;

    @SuppressWarnings("NullAway.Init") // opened before each test
    PeerTest() {}

    @BeforeEach
    void open() throws IOException {
        endpoint = TcpEndpoint.open(
                store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
        String name = "127.0.0.1:" + endpoint.address().getPort();
        peer = new Peer(name, this::connect, new Peer.BackoffSettings(clock(), PAUSE), connecting::add);
    }

    /// The test's; nobody waits by it.
    private PeerClock clock() {
        return new PeerClock() {
            @Override
            public long nanos() {
                return now;
            }

            @Override
            public void await(Object monitor, long untilNanos) {
                throw new AssertionError("a peer waits for nobody");
            }

            @Override
            public void wake(Object monitor) {
                // No thread waits.
            }
        };
    }

    @AfterEach
    void close() throws IOException {
        peer.close();
        endpoint.close();
        store.close();
        log.setLevel(null);
    }

    private ClusterConnection connect(String name) {
        if (refused) {
            throw new IllegalArgumentException("the test wants it so");
        }
        connected.add(new ClusterConnection.Remote(RemoteKvCache.builder(name)
                .requestTimeout(Duration.ofMinutes(1))
                .connect()));
        return connected.getLast();
    }

    @Test
    void givenSomebodyWhoFoundNoConnection_whenItIsThereByThen_thenItStays() {
        peer.connect();
        connecting.remove().run();
        assertThat(peer.cacheFor(SPACE)).isSameAs(connected.getFirst());
        peer.connect(); // decided before it was there
        connecting.remove().run();
        assertThat(connected).hasSize(1);
        assertThat(peer.cacheFor(SPACE)).isSameAs(connected.getFirst());
    }

    @Test
    void givenAPeerThatIsClosed_whenTheConnectingBegins_thenNothingIsOpened() {
        peer.connect();
        peer.close();
        connecting.remove().run();
        assertThat(connected).isEmpty();
        assertThat(peer.cacheFor(SPACE)).isNull();
    }

    @Test
    void givenAConnectorThatRefuses_whenWanted_thenItIsAskedAgainAfterAPause() {
        log.setLevel(Level.OFF);
        refused = true;
        assertThat(peer.cacheFor(SPACE)).isNull();
        connecting.remove().run();
        assertThat(peer.cacheFor(SPACE)).isNull();
        assertThat(connecting).as("asked again at once").isEmpty();
        refused = false;
        now += PAUSE;
        assertThat(peer.cacheFor(SPACE)).isNull();
        connecting.remove().run();
        assertThat(peer.cacheFor(SPACE)).isNotNull();
        assertThat(peer.failures.sum()).isEqualTo(1);
    }

    @Test
    void givenAPeerThatKeepsFailing_whenWanted_thenItIsLeftAloneForTwiceAsLongEachTimeUpToTheLongest() {
        log.setLevel(Level.OFF);
        try (Peer patient =
                new Peer(peer.name(), this::connect, new Peer.BackoffSettings(clock(), 10 * PAUSE), connecting::add)) {
            patient.connect();
            connecting.remove().run();
            assertThat(patient.cacheFor(SPACE)).isNotNull();
            for (int times : new int[] {1, 2, 4, 8, 10, 10}) {
                patient.onFailure();
                requireOut(patient, times * PAUSE);
            }
            patient.onSuccess();
            assertThat(patient.cacheFor(SPACE)).isNotNull();
            patient.onFailure();
            requireOut(patient, PAUSE);
            assertThat(patient.failures.sum()).isEqualTo(7);
        }
    }

    @Test
    void givenACallerThatIsInterrupted_whenItsCallFails_thenThePeerIsUsed() {
        peer.connect();
        connecting.remove().run();
        Thread.currentThread().interrupt();
        peer.onFailure();
        assertThat(Thread.interrupted()).as("kept for the caller").isTrue();
        assertThat(peer.cacheFor(SPACE)).isNotNull();
        assertThat(peer.failures.sum()).isZero();
    }

    /// It is not asked for exactly so long from now on.
    private void requireOut(Peer of, long pause) {
        assertThat(of.cacheFor(SPACE)).as("at once").isNull();
        assertThat(of.connectionIfUsable()).isNull();
        now += pause - 1;
        assertThat(of.cacheFor(SPACE)).as("%d ns later", pause - 1).isNull();
        now++;
        assertThat(of.cacheFor(SPACE)).as("%d ns later", pause).isNotNull();
    }

    @Test
    void givenAPeerThatWasClosed_whenACallOnItsWayEnds_thenThatIsNoFailure() {
        List<String> said = new ArrayList<>();
        Handler handler = new StreamHandler() {
            @Override
            public synchronized void publish(LogRecord event) {
                said.add(event.getMessage());
            }
        };
        log.addHandler(handler);
        try {
            peer.close();
            peer.onFailure();
        } finally {
            log.removeHandler(handler);
        }
        assertThat(said).isEmpty();
        assertThat(peer.failures.sum()).isZero();
    }
}
