package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.KeyspaceOptions.RecomputeEstimator;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.miss.MissLog.Miss;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.server.quota.ByteBudget;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/// A script of misses for each reason, and what the log says of them.
final class MissReasonsTest {

    private static final int VALUE = 60 << 10;
    private static final int CHARGED = 16 * 4096;

    /// A key of LMCache's, without what makes it a half.
    private static final String CHUNK = "model@1@0@1c7e09ab55";

    private final MissLog log = new MissLog(() -> Instant.EPOCH, new MissCauses(System::nanoTime), (_, _) -> false);
    private final List<String> expected = new ArrayList<>();

    private TestKeyspace open(long quotaBytes, ByteBudget outgoing) {
        KeyspaceLimits limits =
                new KeyspaceLimits(Keyspace.MAX_KEY_BYTES, Keyspace.MAX_VALUE_BYTES, ByteBudget.unlimited(), outgoing);
        TestKeyspace test = new TestKeyspace(
                64L << 20, new KeyspaceOptions(Duration.ofSeconds(2), 1 << 20, Duration.ZERO, quotaBytes, limits));
        test.keyspace().recordMissesTo(log);
        return test;
    }

    private void miss(TestKeyspace test, String key, Reason reason) {
        assertThat(test.get(key)).isNull();
        expected.add(key + " " + reason);
    }

    private void assertLogged() {
        List<String> logged = log.recent(null, _ -> true, MissLog.KEPT).reversed().stream()
                .map(miss -> miss.key() + " " + miss.reason())
                .toList();
        assertThat(logged).isEqualTo(expected);
    }

    @Test
    void givenMissesOfEachReasonInMemory_whenLogged_thenExactlyThoseReasonsAreThere() {
        ByteBudget outgoing = new ByteBudget(VALUE + 8192);
        try (TestKeyspace test = open(2 * CHARGED, outgoing)) {
            miss(test, "never", Reason.NEVER_SEEN);
            test.put("a", TestKeyspace.content(1, VALUE));
            test.put("b", TestKeyspace.content(2, VALUE));
            test.put("c", TestKeyspace.content(3, VALUE));
            miss(test, "a", Reason.QUOTA);
            test.keyspace().delete(TestKeyspace.key("b"));
            miss(test, "b", Reason.DELETED);
            test.put("d", new byte[10], test.keyspace().nowMillis() + 10);
            test.time().advance(Duration.ofMillis(10));
            miss(test, "d", Reason.EXPIRED);
            miss(test, "d", Reason.EXPIRED);
            try (PinnedValue _ = Objects.requireNonNull(test.keyspace().get(TestKeyspace.key("c")))) {
                test.put("e", new byte[50_000]);
                miss(test, "e", Reason.BUSY);
            }
            assertThat(test.get("c")).as("a hit").isNotNull();
            test.put(CHUNK + ":kv_bytes", new byte[100]);
            test.put(CHUNK + ":metadata", new byte[28]);
            test.keyspace().delete(TestKeyspace.key(CHUNK + ":kv_bytes"));
            miss(test, CHUNK + ":metadata", Reason.OTHER_HALF);
            assertLogged();
        }
    }

    @Test
    void givenAFullStore_whenAnEvictedValueIsAskedFor_thenTheLogSaysSoWithTimeAndOrder() {
        try (TestKeyspace test = open(0, ByteBudget.unlimited())) {
            log.tick("lru");
            for (int i = 0; i < 2000; i++) {
                test.put("k" + i, TestKeyspace.content(i, VALUE));
            }
            test.keyspace().count(); // hears of what has happened
            test.time().advance(Duration.ofSeconds(90));
            miss(test, "k0", Reason.EVICTED);
            assertLogged();
            Miss logged = log.recent(null, _ -> true, 1).getFirst();
            assertThat(logged.leftSecondsAgo()).isEqualTo(90);
            assertThat(logged.orderedBy()).isEqualTo("lru");
        }
    }

    @Test
    void givenValuesOnDisk_whenLateOrComputedSooner_thenTheLogSaysWhich() {
        try (DelayedDiskStore store = new DelayedDiskStore()) {
            store.keyspace().recordMissesTo(log);
            store.put("late", "v");
            List<Keyspace.ReadResult.Outcome> outcomes = new ArrayList<>();
            store.keyspace().fetch(TestKeyspace.key("late"), Runnable::run, result -> outcomes.add(result.outcome()));
            store.timeOutFetch();
            assertThat(outcomes).containsExactly(Keyspace.ReadResult.Outcome.TIMED_OUT);
            expected.add("late " + Reason.LATE);

            String chunk = "vllm@model@4@0@a000000000";
            store.put(chunk, "v".repeat(5000));
            // A chunk takes a microsecond to compute, and a millisecond to read.
            ChunkSequenceTracker advised = new ChunkSequenceTracker(
                    store.keyspace(),
                    new ChunkOrder(),
                    (_, _) -> {},
                    null,
                    new RecomputeEstimator(PrefillCost.ofTokenRate(1e9), 1000, Duration.ofSeconds(5), _ -> 1e6));
            assertThat(advised.onLookup(TestKeyspace.key(chunk), true)).isFalse();
            expected.add(chunk + " " + Reason.COMPUTED_SOONER);
            assertLogged();
        }
    }
}
