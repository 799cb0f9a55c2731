package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.ObjectHint;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Hints of a tenant that has a quota: four values.
final class KeyHintApplierTest {

    private static final byte[] VALUE = new byte[60 << 10];
    private static final int CHARGED = 16 * 4096;

    private final KeyspaceOptions options =
            new KeyspaceOptions(Duration.ofSeconds(2), 1 << 20, Duration.ZERO, 4 * CHARGED, KeyspaceLimits.unlimited());

    private final TestKeyspace test = new TestKeyspace(64L << 20, options);

    private int hint(ObjectHint hint, String... keys) {
        return test.keyspace()
                .applyHint(List.of(keys).stream().map(TestKeyspace::key).toList(), hint);
    }

    private void put(String... keys) {
        for (String key : keys) {
            assertThat(test.put(key, VALUE)).isEqualTo(PendingPut.State.WRITING);
        }
    }

    @Test
    void givenAPinnedValue_whenTheQuotaIsFull_thenOthersGoBeforeItUntilItsTimeIsOver() {
        try (test) {
            put("k0", "k1", "k2", "k3");
            assertThat(hint(HintLimits.pin(60_000), "k0")).isEqualTo(1);
            put("k4", "k5", "k6", "k7", "k8");
            assertThat(test.get("k0")).isNotNull();
            test.time().advance(Duration.ofMinutes(2));
            put("k9", "k10", "k11", "k12");
            assertThat(test.get("k0")).isNull();
        }
    }

    @Test
    void givenAValueFromBeforeTheStart_whenItIsPinned_thenTheQuotaTakesOthersFirst() {
        try (test) {
            put("k0", "k1", "k2", "k3");
            Keyspace later = new Keyspace(
                    test.cache(), Namespace.objects("objects", "default"), test.time(), test.time(), options);
            later.onRecovered();
            assertThat(later.applyHint(List.of(TestKeyspace.key("k2")), HintLimits.pin(60_000)))
                    .isEqualTo(1);
            for (String key : List.of("k4", "k5", "k6")) {
                try (PendingPut put = later.put(TestKeyspace.key(key), VALUE.length)) {
                    TestKeyspace.fill(put, VALUE);
                    assertThat(put.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS))
                            .isTrue();
                }
            }
            assertThat(test.cache().hintStats().pins()).isEqualTo(1);
            try (PinnedValue kept = later.get(TestKeyspace.key("k2"))) {
                assertThat(kept).isNotNull();
            }
        }
    }

    @Test
    void givenAnExpectedValue_whenTheQuotaIsFull_thenItCountsAsUsed() {
        try (test) {
            put("k0", "k1", "k2", "k3");
            assertThat(hint(HintLimits.expect(0), "k0")).isEqualTo(1);
            put("k4", "k5");
            assertThat(test.get("k0")).isNotNull();
            assertThat(test.get("k1")).isNull();
        }
    }

    @Test
    void givenAllIsPinned_whenMoreIsStored_thenTheQuotaHoldsAndThePutIsTaken() {
        try (test) {
            put("k0", "k1", "k2", "k3");
            assertThat(hint(HintLimits.pin(60_000), "k0", "k1", "k2", "k3")).isEqualTo(4);
            put("k4", "k5");
            assertThat(test.keyspace().stats().usage().usedBytes()).isEqualTo(4 * CHARGED);
            assertThat(test.get("k5")).isNotNull();
            assertThat(test.cache().hintStats().pins()).isLessThan(4);
        }
    }
}
