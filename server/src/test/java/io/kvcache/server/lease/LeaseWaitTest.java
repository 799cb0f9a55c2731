package io.kvcache.server.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.http.HttpConfig;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.keyspace.DelayedDiskStore;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.lease.LeaseEndpoint.LeaseRequest;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.quota.ByteBudget;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The reply to a request for a lease of a value that is on disk, or not available now.
final class LeaseWaitTest {

    private static final Duration MAX_DURATION = Duration.ofMinutes(5);

    private final DelayedDiskStore store = new DelayedDiskStore();
    private final Leases leases = new Leases(store.time(), 1 << 20);

    @AfterEach
    void close() {
        leases.close();
        assertThat(store.held()).isZero();
        store.close();
    }

    private EmbeddedConnection connect() {
        LeaseEndpoint area = new LeaseEndpoint(store.real(), Map.of("default", store.keyspace()), leases, MAX_DURATION);
        return new EmbeddedConnection(
                new HttpProtocol(new HttpConfig(
                        ListenerAuth.withoutAuth(PasswordAuthenticator.withoutPasswords(store.time())),
                        Map.of("default", store.keyspace()),
                        Map.of(),
                        List.of(area),
                        Set.of("*"))),
                new ConnectionRegistry(NetLimits.defaults(), store.time()));
    }

    private static String lease(String query) {
        return "POST /v1/kv/b/k/leases?" + query + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    }

    @ParameterizedTest
    @CsvSource({"timeout_ms=250, 250", "timeout_ms=0, 0", "timeout_ms=600000, 5000", "ttl_s=30.0, 5000"})
    void givenAValueOnDisk_whenLeased_thenItMayTakeAsLongAsTheClientWaitsAndTheStoreAllows(
            String query, long expectedMillis) {
        store.put("b/k", "value");
        try (EmbeddedConnection embeddedConnection = connect()) {
            embeddedConnection.send(lease(query));
            assertThat(store.fetchTimeout()).hasMillis(expectedMillis);
            store.timeOutFetch();
            embeddedConnection.channel().runPendingTasks();
            assertThat(embeddedConnection.text())
                    .startsWith("HTTP/1.1 504 ")
                    .containsIgnoringCase("retry-after: 1\r\n")
                    .contains("urn:kvcache:problem:late");
            assertThat(leases.count()).isZero();
        }
    }

    @Test
    void givenNoSuchValue_whenLeased_thenNothingIsSaidOfTryingAgain() {
        try (EmbeddedConnection embeddedConnection = connect()) {
            assertThat(embeddedConnection.ask(lease("timeout_ms=1000&ttl_s=30.0")))
                    .startsWith("HTTP/1.1 504 ")
                    .contains("no such value")
                    .doesNotContainIgnoringCase("retry-after");
        }
    }

    @Test
    void givenAsMuchOnItsWayAsMayBe_whenLeased_thenTheClientIsToldToTryAgain() {
        ByteBudget leaving = new ByteBudget(1000);
        store.restart(new KeyspaceLimits(100, 1000, ByteBudget.unlimited(), leaving));
        store.put("b/k", "value");
        try (EmbeddedConnection embeddedConnection = connect()) {
            assertThat(leaving.tryAcquire(1000)).isTrue();
            embeddedConnection.send(lease("ttl_s=1"));
            store.completeFetch();
            embeddedConnection.channel().runPendingTasks();
            assertThat(embeddedConnection.text())
                    .startsWith("HTTP/1.1 503 ")
                    .containsIgnoringCase("retry-after: 1\r\n")
                    .contains("limits.sending lets this tenant have 1000 bytes");
            leaving.release(1000);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "ttl_s=soon | ttl_s is soon; it takes seconds, more than 0 and at most 300 (lease.longest)",
                "ttl_s=0 | ttl_s is 0; it takes seconds",
                "ttl_s=-1 | ttl_s is -1; it takes seconds",
                "ttl_s=1e9 | ttl_s is 1e9; it takes seconds",
                "ttl_s=300.000000001 | ttl_s is 300.000000001; it takes seconds",
                "timeout_ms=-1 | timeout_ms is -1; it takes whole milliseconds, 0 to 600000",
                "timeout_ms=1.5 | timeout_ms is 1.5; it takes whole milliseconds",
                "timeout_ms=600001 | timeout_ms is 600001; it takes whole milliseconds",
                "timeout_ms= | timeout_ms is ; it takes whole milliseconds"
            })
    void givenATimeOutOfItsRange_whenLeased_thenTheRangeIsSaid(String query, String said) {
        try (EmbeddedConnection embeddedConnection = connect()) {
            assertThat(embeddedConnection.ask(lease(query)))
                    .startsWith("HTTP/1.1 400 ")
                    .contains(said);
        }
    }

    @Test
    void givenAFractionOfASecond_whenLeased_thenItHoldsJustAsLong() {
        assertThat(LeaseRequest.of(Map.of("ttl_s", List.of("0.5")), MAX_DURATION)
                        .durationNanos())
                .isEqualTo(500_000_000);
        assertThat(LeaseRequest.of(Map.of("ttl_s", List.of("300")), MAX_DURATION)
                        .durationNanos())
                .isEqualTo(MAX_DURATION.toNanos());
        assertThat(LeaseRequest.of(Map.of(), Duration.ofSeconds(10)).durationNanos())
                .isEqualTo(Duration.ofSeconds(10).toNanos());
    }
}
