package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/// What a miss is said to come from.
final class MissCauseTest {

    private static final int VALUE = 60 << 10;
    private static final int CHARGED = 16 * 4096;

    private static TestKeyspace limited(long hostBytes, long quotaBytes) {
        return new TestKeyspace(
                hostBytes,
                new KeyspaceOptions(Duration.ofSeconds(2), 1 << 20, Duration.ZERO, quotaBytes, Bounds.none()));
    }

    private static byte[] value(int seed) {
        return TestKeyspace.content(seed, VALUE);
    }

    private static KeyspaceStats.Reads reads(TestKeyspace test) {
        return test.keyspace().stats().reads();
    }

    @Test
    void givenKeysThatLeftInEachWay_whenAskedFor_thenTheMissSaysWhich() {
        try (TestKeyspace test = limited(64L << 20, 2 * CHARGED)) {
            assertThat(test.get("never")).isNull();
            test.put("a", value(1));
            test.put("b", value(2));
            test.put("c", value(3));
            assertThat(test.get("a")).isNull();
            test.keyspace().delete(TestKeyspace.key("b"));
            assertThat(test.get("b")).isNull();
            test.put("d", value(4), test.keyspace().nowMillis() + 10);
            test.time().pass(Duration.ofMillis(10));
            assertThat(test.get("d")).isNull();
            assertThat(test.get("d")).isNull();

            assertThat(reads(test)).isEqualTo(new KeyspaceStats.Reads(0, 1, 0, 1, 1, 2, 0, 0));
            test.put("b", value(5));
            assertThat(test.get("b")).isEqualTo(value(5));
            test.keyspace().clear();
            assertThat(test.get("b")).isNull();
            assertThat(reads(test)).isEqualTo(new KeyspaceStats.Reads(1, 1, 0, 1, 2, 2, 0, 0));
        }
    }

    @Test
    void givenAFullStore_whenAnEvictedKeyIsAskedFor_thenTheMissSaysSoBeforeAndAfterItIsHeardOf() {
        try (TestKeyspace test = limited(64L << 20, 0)) {
            int stored = 2000;
            for (int i = 0; i < stored; i++) {
                test.put("k" + i, value(i));
            }
            assertThat(test.get("k0")).isNull();
            test.keyspace().count(); // hears of what has happened
            assertThat(test.get("k1")).isNull();
            assertThat(test.get("none")).isNull();
            KeyspaceStats stats = test.keyspace().stats();
            assertThat(stats.reads()).isEqualTo(new KeyspaceStats.Reads(0, 1, 2, 0, 0, 0, 0, 0));
            assertThat(stats.evicted()).isEqualTo(stored - stats.keys()).isPositive();
        }
    }
}
