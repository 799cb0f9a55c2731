package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import javax.net.ssl.SSLEngine;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What is a TCP endpoint's own.
@Timeout(120)
final class TcpEndpointTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 1024, 16, Dtype.BF16));

    @Test
    void givenAConnectionAtWork_whenClosed_thenItsThreadIsWaitedFor() throws Exception {
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch leave = new CountDownLatch(1);
        AtomicBoolean left = new AtomicBoolean();
        EndpointOptions options = EndpointOptions.DEFAULTS.withNamespaces(namespace -> {
            entered.countDown();
            boolean told = awaited(leave);
            left.set(true);
            return told ? "closed meanwhile" : "never told to leave";
        });
        try (TieredKvCache store = TieredKvCache.builder()
                        .hostBytes(64 << 20)
                        .prefaultInBackground(false)
                        .build();
                TcpEndpoint endpoint =
                        TcpEndpoint.open(store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), options);
                RemoteKvCache cache =
                        RemoteKvCache.connect("127.0.0.1:" + endpoint.address().getPort())) {
            Thread client = Thread.ofPlatform().start(() -> cache.register(SPACE));
            assertThat(awaited(entered)).isTrue();
            Thread closing = Thread.ofPlatform().start(() -> close(endpoint));
            while (closing.isAlive() && closing.getState() != Thread.State.TIMED_WAITING) {
                Pause.briefly();
            }
            assertThat(closing.isAlive())
                    .as("it waits for the thread that is inside")
                    .isTrue();
            leave.countDown();
            closing.join();
            assertThat(left).isTrue();
            assertThat(threadsAt(endpoint.address().getPort())).isZero();
            client.join();
        }
    }

    @Test
    void givenAConnectionThatCannotBeServed_whenOthersCome_thenEachIsAcceptedAndClosed() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        Supplier<SSLEngine> none = () -> {
            throw new IllegalStateException("no certificate, the time " + asked.incrementAndGet());
        };
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        try (TieredKvCache store = TieredKvCache.builder()
                        .hostBytes(64 << 20)
                        .prefaultInBackground(false)
                        .build();
                TcpEndpoint endpoint = TcpEndpoint.open(store, any, EndpointOptions.DEFAULTS, none)) {
            for (int time = 1; time <= 3; time++) {
                try (Socket client = new Socket(
                        endpoint.address().getAddress(), endpoint.address().getPort())) {
                    client.setSoTimeout(60_000);
                    assertThat(client.getInputStream().read()).isNegative();
                    assertThat(asked).hasValue(time);
                }
            }
            assertThat(endpoint.stats().connections()).isZero();
        }
    }

    /// Of the endpoint at a port.
    private static long threadsAt(int port) {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(each -> each.getName().startsWith("kvcache-tcp-")
                        && each.getName().endsWith("-" + port))
                .count();
    }

    private static boolean awaited(CountDownLatch latch) {
        try {
            latch.await();
            return true;
        } catch (InterruptedException stopped) {
            return false;
        }
    }

    private static void close(TcpEndpoint endpoint) {
        try {
            endpoint.close();
        } catch (IOException failed) {
            throw new AssertionError(failed);
        }
    }
}
