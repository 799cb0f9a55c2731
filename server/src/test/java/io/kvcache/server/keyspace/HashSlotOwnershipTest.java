package io.kvcache.server.keyspace;

import static io.kvcache.server.keyspace.SettableViews.server;
import static io.kvcache.server.keyspace.TestKeyspace.key;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Which values a server of a cluster serves when slots go and come back.
final class HashSlotOwnershipTest {

    private static final NodeInfo SELF = server("kv-0", NodeState.SERVING);
    private static final NodeInfo OTHER = server("kv-1", NodeState.SERVING);
    private static final byte[] V1 = {1};
    private static final byte[] V2 = {2, 2};
    private static final String CHUNK = "vllm@model@1@0@00000000000000a5";

    private final SettableViews views = new SettableViews();
    private final TestKeyspace test = TestKeyspace.inCluster("kv-0", views);
    private final Keyspace keyspace = test.keyspace();

    @AfterEach
    void close() {
        test.close();
    }

    private boolean isOwn(String key) {
        return Objects.requireNonNull(test.slotOwnership()).map().isOwn(HashSlots.of(key(key)));
    }

    /// A key that this server owns also while both serve.
    private String keptKey() {
        views.tell(SELF, OTHER);
        return IntStream.range(0, 1000)
                .mapToObj(number -> "k" + number)
                .filter(this::isOwn)
                .findFirst()
                .orElseThrow();
    }

    @Test
    void givenAnUnbrokenOwner_whenOthersComeAndGo_thenItsValuesStay() {
        String key = keptKey();
        test.put(key, V1);

        views.tell(SELF, server("kv-1", NodeState.DRAINING));
        views.tell(SELF);
        assertThat(test.get(key)).isEqualTo(V1);
        views.tell(SELF, server("kv-1", NodeState.JOINING, 2, ""));
        views.tell(SELF, server("kv-1", NodeState.SERVING, 2, ""));
        assertThat(test.get(key)).isEqualTo(V1);
        assertThat(keyspace.stats().reads().misses()).isZero();
    }

    @Test
    void givenASlotThatWasLostAndRegained_whenAsked_thenItsOldValuesAreGone() {
        views.tell(SELF);
        test.put("lost", V1);
        test.put(CHUNK, V1);

        views.tell(server("kv-0", NodeState.DRAINING), OTHER);
        assertThat(isOwn("lost")).isFalse();
        views.tell(SELF);

        assertThat(test.get("lost")).isNull();
        assertThat(keyspace.exists(key("lost"))).isFalse();
        assertThat(keyspace.info(key("lost"))).isNull();
        assertThat(keyspace.delete(key("lost"))).isFalse();
        assertThat(keyspace.expireAt(key("lost"), Long.MAX_VALUE)).isFalse();
        assertThat(test.get(CHUNK)).isEqualTo(V1);
        test.put("lost", V2);
        assertThat(test.get("lost")).isEqualTo(V2);
    }

    @Test
    void givenAValueBelowTheFence_whenListedOrWrittenUnderACondition_thenItIsAbsent() {
        views.tell(SELF);
        test.put("a", V1);
        test.put("b", V1);
        views.tell(server("kv-0", NodeState.DRAINING), OTHER);
        views.tell(SELF);

        assertThat(keyspace.scan(0, 10).keys()).isEmpty();
        assertThat(commit("a", PendingPut.Condition.IF_PRESENT)).isFalse();
        assertThat(commit("b", PendingPut.Condition.IF_ABSENT)).isTrue();
        assertThat(test.get("b")).isEqualTo(V2);
    }

    private boolean commit(String key, PendingPut.Condition condition) {
        try (PendingPut put = keyspace.put(key(key), V2.length)) {
            TestKeyspace.fill(put, V2);
            return put.commit(0, TensorMetadata.NONE, condition);
        }
    }

    @Test
    void givenAPartition_whenBothSidesMeet_thenValuesFromBeforeAreGone() {
        String key = keptKey();
        test.put(key, V1);
        views.tell(SELF);
        test.put("during", V1);

        views.tellMerged(SELF, OTHER);

        assertThat(test.get(key)).isNull();
        assertThat(test.get("during")).isNull();
    }

    @Test
    void givenAServerThatWasStopped_whenItHearsOfAMergeOnly_thenItsValuesAreGone() {
        String key = keptKey();
        test.put(key, V1);

        views.tellMerged(SELF, OTHER);

        assertThat(test.get(key)).isNull();
    }

    @Test
    void givenAServerThatAppearsServing_whenItWasNotSeenToJoin_thenValuesFromBeforeAreGone() {
        String key = keptKey();
        views.tell(SELF);
        test.put(key, V1);

        views.tell(SELF, OTHER);

        assertThat(test.get(key)).isNull();
    }

    @Test
    void givenAnUpload_whenTheSlotGoesAndComesBackMeanwhile_thenItsValueIsNew() {
        views.tell(SELF);
        try (PendingPut put = keyspace.put(key("k"), V2.length)) {
            TestKeyspace.fill(put, V2);
            views.tell(server("kv-0", NodeState.DRAINING), OTHER);
            views.tell(SELF);
            assertThat(put.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS))
                    .isTrue();
        }
        assertThat(test.get("k")).isEqualTo(V2);
    }

    @Test
    void givenValuesOfAnEarlierProcess_whenAsked_thenMutableOnesAreGone() {
        views.tell(SELF);
        HashSlotOwnership ownership = Objects.requireNonNull(test.slotOwnership());

        assertThat(ownership.admits(key("k"), 0)).isFalse();
        assertThat(ownership.admits(key("k"), ownership.writeNumber())).isTrue();
        assertThat(ownership.admits(key("k"), ownership.writeNumber() - (1L << 20)))
                .isFalse();
        assertThat(ownership.admits(key("k"), ownership.writeNumber() + (1L << 20)))
                .isFalse();
    }

    @Test
    void givenAValueThatIsBeingReplaced_whenItFallsBelowTheFence_thenTheReplacementStays() {
        views.tell(SELF);
        test.put("k", V1);
        try (PendingPut put = keyspace.put(key("k"), V2.length)) {
            views.tell(server("kv-0", NodeState.DRAINING), OTHER);
            views.tell(SELF);
            assertThat(test.get("k")).isNull();
            TestKeyspace.fill(put, V2);
            put.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS);
        }
        assertThat(test.get("k")).isEqualTo(V2);
    }

    @Test
    void givenNoCluster_whenValuesAreWritten_thenTheyHaveNoNumber() {
        try (TestKeyspace alone = TestKeyspace.small()) {
            alone.put("k", V1);
            try (PinnedValue value = Objects.requireNonNull(alone.keyspace().get(key("k")))) {
                assertThat(value.writeNumber()).isZero();
            }
        }
        views.tell(SELF);
        test.put("k", V1);
        try (PinnedValue value = Objects.requireNonNull(keyspace.get(key("k")))) {
            assertThat(value.writeNumber())
                    .isEqualTo(Objects.requireNonNull(test.slotOwnership()).writeNumber());
        }
        assertThat(List.of(views.view().epoch())).containsExactly(1L);
    }

    @Test
    void givenValuesBelowTheFence_whenAsked_thenTheyAreOutdatedAndOnlyLookUpsCount() {
        views.tell(SELF);
        for (String key : List.of("read", "asked", "ttl", "deleted", "held")) {
            test.put(key, V1);
        }
        views.tell(server("kv-0", NodeState.DRAINING), OTHER);
        views.tell(SELF);

        assertThat(keyspace.info(key("ttl"))).isNull();
        assertThat(keyspace.delete(key("deleted"))).isFalse();
        assertThat(keyspace.hold(key("held"))).isNull();
        assertThat(keyspace.stats().reads().misses()).as("no look-ups").isZero();

        assertThat(test.get("read")).isNull();
        assertThat(keyspace.exists(key("asked"))).isFalse();
        assertThat(test.get("ttl")).as("why it left is known").isNull();
        assertThat(keyspace.stats().reads().of(Reason.OUTDATED)).isEqualTo(3);
        assertThat(keyspace.stats().reads().misses()).isEqualTo(3);
    }
}
