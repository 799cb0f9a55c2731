package io.kvcache.server.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.TestKeyspace;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class LeasesTest {

    private static final int BYTES = 1000;

    private final TestKeyspace test = TestKeyspace.small();
    private final Leases leases = new Leases(test.time(), 2500);

    private PinnedValue value() {
        test.put("k", new byte[BYTES]);
        return Objects.requireNonNull(test.keyspace().get(TestKeyspace.key("k")));
    }

    @Test
    void givenLeases_whenTheirTimeIsOver_thenTheyEndThoughNobodyReleasedThem() {
        String first = Objects.requireNonNull(leases.grant(value(), TimeUnit.SECONDS.toNanos(10)));
        String second = Objects.requireNonNull(leases.grant(value(), TimeUnit.SECONDS.toNanos(20)));
        assertThat(first).hasSize(32).isNotEqualTo(second);
        assertThat(test.cache().stats().openTables()).isEqualTo(2);
        test.time().advance(Duration.ofSeconds(10));
        leases.tick();
        assertThat(leases.count()).isEqualTo(1);
        assertThat(leases.expiredCount()).isEqualTo(1);
        assertThat(leases.release(first)).isFalse();
        assertThat(leases.release(second)).isTrue();
        assertThat(leases.release(second)).isFalse();
        assertThat(leases.heldBytes()).isZero();
        assertThat(test.cache().stats().openTables()).isZero();
        test.close();
    }

    @Test
    void givenAsMuchAsMayBeLeased_whenMoreIsAsked_thenItIsRefusedAndNothingIsHeld() {
        leases.grant(value(), 1);
        leases.grant(value(), 1);
        assertThat(leases.grant(value(), 1)).isNull();
        assertThat(leases.heldBytes()).isEqualTo(2 * BYTES);
        assertThat(test.cache().stats().openTables()).isEqualTo(2);
        leases.close();
        assertThat(leases.count()).isZero();
        test.close();
    }
}
