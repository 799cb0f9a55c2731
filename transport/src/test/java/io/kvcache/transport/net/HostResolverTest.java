package io.kvcache.transport.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.net.TcpConnector.HostResolver;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Nobody waits for a name longer than he wants to.
@Timeout(180)
final class HostResolverTest {

    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);

    @Test
    void givenALookupThatHangs_whenWaitedFor_thenItEndsInTimeAndGoesOnForTheNext() throws Exception {
        CountDownLatch hangs = new CountDownLatch(1);
        AtomicInteger lookups = new AtomicInteger();
        HostResolver lookup = new HostResolver("somewhere", name -> {
            lookups.incrementAndGet();
            hangs.await();
            return InetAddress.ofLiteral("127.0.0.7");
        });
        for (int i = 0; i < 3; i++) {
            assertThatThrownBy(() -> lookup.resolve(1_000_000))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("somewhere");
        }
        hangs.countDown();
        assertThat(lookup.resolve(PATIENCE)).isEqualTo(InetAddress.ofLiteral("127.0.0.7"));
        assertThat(lookups).as("lookups beside each other").hasValueLessThanOrEqualTo(2);
    }

    @Test
    void givenAName_whenLookedUpTwice_thenItIsAskedForTwice() throws Exception {
        AtomicInteger lookups = new AtomicInteger();
        HostResolver lookup =
                new HostResolver("moves", name -> InetAddress.ofLiteral("127.0.0." + lookups.incrementAndGet()));
        assertThat(lookup.resolve(PATIENCE)).isEqualTo(InetAddress.ofLiteral("127.0.0.1"));
        assertThat(lookup.resolve(PATIENCE)).isEqualTo(InetAddress.ofLiteral("127.0.0.2"));
    }

    @Test
    void givenAnAddress_whenLookedUp_thenNobodyIsAsked() throws Exception {
        for (String address : new String[] {"127.0.0.9", "::1"}) {
            HostResolver lookup = new HostResolver(address, name -> {
                throw new AssertionError("asked for " + name);
            });
            assertThat(lookup.resolve(PATIENCE)).isEqualTo(InetAddress.ofLiteral(address));
        }
    }

    @Test
    void givenNoSuchName_whenLookedUp_thenItSaysWhich() {
        HostResolver lookup = new HostResolver("nowhere", name -> {
            throw new UnknownHostException(name);
        });
        assertThatThrownBy(() -> lookup.resolve(PATIENCE))
                .isInstanceOf(UnknownHostException.class)
                .hasMessage("nowhere: no such host");
    }
}
