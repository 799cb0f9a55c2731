package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.miss.MissLog.Reason;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/// The reported causes of misses.
final class MissCauseTest {

    private static final int VALUE = 60 << 10;
    private static final int CHARGED = 16 * 4096;

    private static TestKeyspace limited(long hostBytes, long quotaBytes) {
        return new TestKeyspace(
                hostBytes,
                new KeyspaceOptions(
                        Duration.ofSeconds(2), 1 << 20, Duration.ZERO, quotaBytes, KeyspaceLimits.unlimited()));
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
            test.time().advance(Duration.ofMillis(10));
            assertThat(test.get("d")).isNull();
            assertThat(test.get("d")).isNull();

            assertThat(reads(test))
                    .isEqualTo(TestReads.of(
                            0,
                            Map.of(Reason.NEVER_SEEN, 1L, Reason.QUOTA, 1L, Reason.DELETED, 1L, Reason.EXPIRED, 2L)));
            test.put("b", value(5));
            assertThat(test.get("b")).isEqualTo(value(5));
            test.keyspace().clear();
            assertThat(test.get("b")).isNull();
            assertThat(reads(test))
                    .isEqualTo(TestReads.of(
                            1,
                            Map.of(Reason.NEVER_SEEN, 1L, Reason.QUOTA, 1L, Reason.DELETED, 2L, Reason.EXPIRED, 2L)));
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
            assertThat(stats.reads()).isEqualTo(TestReads.of(0, Map.of(Reason.NEVER_SEEN, 1L, Reason.EVICTED, 2L)));
            assertThat(stats.evicted()).isEqualTo(stored - stats.keys()).isPositive();
        }
    }

    @Test
    void givenKeysThatLeftInEachWay_whenAskedWhetherTheyExist_thenTheMissSaysWhich() {
        try (TestKeyspace test = limited(64L << 20, 2 * CHARGED)) {
            assertThat(exists(test, "never")).isFalse();
            test.put("a", value(1));
            test.put("b", value(2));
            test.put("c", value(3));
            assertThat(exists(test, "a")).isFalse();
            test.keyspace().delete(TestKeyspace.key("b"));
            assertThat(exists(test, "b")).isFalse();
            test.put("d", value(4), test.keyspace().nowMillis() + 10);
            test.time().advance(Duration.ofMillis(10));
            assertThat(exists(test, "d")).isFalse();
            assertThat(exists(test, "c")).isTrue();

            assertThat(reads(test))
                    .isEqualTo(TestReads.of(
                            1,
                            Map.of(Reason.NEVER_SEEN, 1L, Reason.QUOTA, 1L, Reason.DELETED, 1L, Reason.EXPIRED, 1L)));
        }
    }

    private static boolean exists(TestKeyspace test, String key) {
        return test.keyspace().exists(TestKeyspace.key(key));
    }

    @Test
    void givenAValueThatWasSaidToExist_whenRead_thenBothAreOneLookUp() {
        try (TestKeyspace test = limited(64L << 20, 0)) {
            test.put("k", value(1));
            for (int round = 1; round <= 3; round++) {
                assertThat(exists(test, "k")).isTrue();
                assertThat(test.get("k")).isEqualTo(value(1));
                assertThat(reads(test).hits()).as("look-ups").isEqualTo(round);
            }
            assertThat(test.get("k")).isEqualTo(value(1));
            assertThat(reads(test).hits()).as("one more read").isEqualTo(4);
            assertThat(test.keyspace().stats().promises().kept()).isEqualTo(3);
            test.time().advance(Duration.ofMinutes(1));
            test.keyspace().tick();
            assertThat(exists(test, "k")).isTrue();
            test.keyspace().delete(TestKeyspace.key("k"));
            assertThat(test.get("k")).isNull();
            assertThat(reads(test).of(Reason.DELETED))
                    .as("yes, and then a miss")
                    .isEqualTo(1);
        }
    }

    @Test
    void givenAValueOnDisk_whenSaidToExistAndFetched_thenBothAreOneLookUp() {
        try (DelayedDiskStore store = new DelayedDiskStore()) {
            store.put("k", "value");
            byte[] key = TestKeyspace.key("k");
            assertThat(store.keyspace().exists(key)).isTrue();
            assertThat(store.keyspace().read(key).outcome()).isEqualTo(ReadResult.Outcome.ON_DISK);
            assertThat(fetched(store, store::timeOutFetch)).containsExactly(ReadResult.Outcome.TIMED_OUT);

            KeyspaceStats stats = store.keyspace().stats();
            assertThat(stats.reads()).isEqualTo(TestReads.of(1, Map.of(Reason.LATE, 1L)));
            assertThat(stats.promises().broken()).as("nothing was promised").isZero();
            assertThat(store.keyspace().exists(key)).isTrue();
            store.keyspace()
                    .fetch(
                            key,
                            Runnable::run,
                            come -> Objects.requireNonNull(come.value()).close());
            store.completeFetch();
            assertThat(store.keyspace().stats().reads().hits()).isEqualTo(2);
        }
    }

    private static List<ReadResult.Outcome> fetched(DelayedDiskStore store, Runnable meanwhile) {
        List<ReadResult.Outcome> outcomes = new ArrayList<>();
        store.keyspace().fetch(TestKeyspace.key("k"), Runnable::run, readResult -> outcomes.add(readResult.outcome()));
        meanwhile.run();
        return outcomes;
    }

    @Test
    void givenAValueOnDisk_whenItDoesNotComeInTime_thenItIsLateAndNotGone() {
        try (DelayedDiskStore store = new DelayedDiskStore()) {
            store.put("k", "value");
            assertThat(store.keyspace().read(TestKeyspace.key("k")).outcome()).isEqualTo(ReadResult.Outcome.ON_DISK);
            assertThat(fetched(store, store::timeOutFetch)).containsExactly(ReadResult.Outcome.TIMED_OUT);
            assertThat(store.keyspace().stats().reads()).isEqualTo(TestReads.of(0, Map.of(Reason.LATE, 1L)));
        }
    }

    @Test
    void givenAValueOnDisk_whenItIsDeletedBeforeItComes_thenItIsGoneAndNotLate() {
        try (DelayedDiskStore store = new DelayedDiskStore()) {
            store.put("k", "value");
            List<ReadResult.Outcome> outcomes = fetched(store, () -> {
                store.keyspace().delete(TestKeyspace.key("k"));
                store.timeOutFetch();
            });
            assertThat(outcomes).containsExactly(ReadResult.Outcome.MISS);
            assertThat(store.keyspace().stats().reads()).isEqualTo(TestReads.of(0, Map.of(Reason.DELETED, 1L)));
        }
    }
}
