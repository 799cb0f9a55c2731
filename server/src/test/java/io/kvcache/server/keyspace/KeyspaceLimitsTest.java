package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.server.quota.ByteBudget;
import java.time.Duration;
import java.util.Objects;
import org.junit.jupiter.api.Test;

final class KeyspaceLimitsTest {

    private final KeyspaceLimits keyspaceLimits =
            new KeyspaceLimits(8, 1000, new ByteBudget(1000), new ByteBudget(2000));
    private final KeyspaceOptions options =
            new KeyspaceOptions(Duration.ofSeconds(2), 1 << 20, Duration.ZERO, 0, keyspaceLimits);

    @Test
    void givenValuesOnTheirWay_whenMoreThanMayBeCome_thenTheyAreRefusedUntilThoseAreThere() {
        try (TestKeyspace test = new TestKeyspace(64L << 20, options)) {
            PendingPut a = test.keyspace().put(TestKeyspace.key("a"), 600);
            assertThat(test.put("b", new byte[401])).isEqualTo(PendingPut.State.REJECTED);
            assertThat(test.put("c", new byte[400])).isEqualTo(PendingPut.State.WRITING);
            TestKeyspace.fill(a, new byte[600]);
            a.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS);
            a.close();
            assertThat(keyspaceLimits.incoming().usedBytes()).isZero();
            assertThat(test.put("b", new byte[401])).isEqualTo(PendingPut.State.WRITING);
        }
    }

    @Test
    void givenAPutThatIsGivenUpOrJoined_whenItEnds_thenNothingIsOnItsWay() {
        try (TestKeyspace test = new TestKeyspace(64L << 20, options)) {
            PendingPut a = test.keyspace().put(TestKeyspace.key("a"), 600);
            test.keyspace().put(TestKeyspace.key("a"), 600).close();
            assertThat(keyspaceLimits.incoming().usedBytes()).isEqualTo(600);
            a.close();
            assertThat(keyspaceLimits.incoming().usedBytes()).isZero();
        }
    }

    @Test
    void givenAValueLargerThanMayBeOnItsWay_whenNothingElseIs_thenItIsTaken() {
        try (TestKeyspace test = new TestKeyspace(64L << 20, options)) {
            assertThat(test.put("a", new byte[5000])).isEqualTo(PendingPut.State.WRITING);
        }
    }

    @Test
    void givenValuesThatAreBeingSent_whenMoreThanMayBeIsRead_thenItIsAMissThatSaysWhy() {
        try (TestKeyspace test = new TestKeyspace(64L << 20, options)) {
            test.put("a", new byte[950]);
            test.put("b", new byte[950]);
            try (PinnedValue first = Objects.requireNonNull(test.keyspace().get(TestKeyspace.key("a")));
                    PinnedValue second = Objects.requireNonNull(test.keyspace().get(TestKeyspace.key("b")))) {
                assertThat(keyspaceLimits.outgoing().usedBytes())
                        .isGreaterThanOrEqualTo(first.bytes() + second.bytes());
                assertThat(test.get("a")).isNull();
                assertThat(test.keyspace().exists(TestKeyspace.key("a"))).isTrue();
                assertThat(test.keyspace().stats().reads().of(Reason.BUSY)).isEqualTo(1);
                assertThat(test.keyspace().stats().traffic().leavingBytes())
                        .isEqualTo(keyspaceLimits.outgoing().usedBytes());
            }
            assertThat(keyspaceLimits.outgoing().usedBytes()).isZero();
            assertThat(test.get("a")).isNotNull();
        }
    }

    @Test
    void givenAValueLargerThanMayBeSent_whenNothingElseIs_thenItIsRead() {
        KeyspaceLimits narrow = new KeyspaceLimits(8, 1000, ByteBudget.unlimited(), new ByteBudget(10));
        try (TestKeyspace test = new TestKeyspace(
                64L << 20, new KeyspaceOptions(Duration.ofSeconds(2), 1 << 20, Duration.ZERO, 0, narrow))) {
            test.put("a", new byte[950]);
            assertThat(test.get("a")).hasSize(950);
            assertThat(narrow.outgoing().usedBytes()).isZero();
        }
    }
}
