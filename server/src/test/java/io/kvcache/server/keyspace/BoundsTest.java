package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

final class BoundsTest {

    private final Bounds bounds = new Bounds(8, 1000, 1000);
    private final KeyspaceOptions options =
            new KeyspaceOptions(Duration.ofSeconds(2), 1 << 20, Duration.ZERO, 0, bounds);

    @Test
    void givenValuesOnTheirWay_whenMoreThanMayBeCome_thenTheyAreRefusedUntilThoseAreThere() {
        try (TestKeyspace test = new TestKeyspace(64L << 20, options)) {
            PendingPut a = test.keyspace().put(TestKeyspace.key("a"), 600);
            assertThat(test.put("b", new byte[401])).isEqualTo(PendingPut.State.REFUSED);
            assertThat(test.put("c", new byte[400])).isEqualTo(PendingPut.State.WRITING);
            TestKeyspace.fill(a, new byte[600]);
            a.commit(0, TensorNote.NONE, PendingPut.Condition.ALWAYS);
            a.close();
            assertThat(bounds.inFlight()).isZero();
            assertThat(test.put("b", new byte[401])).isEqualTo(PendingPut.State.WRITING);
        }
    }

    @Test
    void givenAPutThatIsGivenUpOrJoined_whenItEnds_thenNothingIsOnItsWay() {
        try (TestKeyspace test = new TestKeyspace(64L << 20, options)) {
            PendingPut a = test.keyspace().put(TestKeyspace.key("a"), 600);
            test.keyspace().put(TestKeyspace.key("a"), 600).close();
            assertThat(bounds.inFlight()).isEqualTo(600);
            a.close();
            assertThat(bounds.inFlight()).isZero();
        }
    }

    @Test
    void givenAValueLargerThanMayBeOnItsWay_whenNothingElseIs_thenItIsTaken() {
        try (TestKeyspace test = new TestKeyspace(64L << 20, options)) {
            assertThat(test.put("a", new byte[5000])).isEqualTo(PendingPut.State.WRITING);
        }
    }
}
