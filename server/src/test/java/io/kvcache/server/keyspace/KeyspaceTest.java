package io.kvcache.server.keyspace;

import static io.kvcache.server.keyspace.TestKeyspace.content;
import static io.kvcache.server.keyspace.TestKeyspace.fill;
import static io.kvcache.server.keyspace.TestKeyspace.key;
import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.Namespace;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.Keyspace.KeyPage;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.miss.MissLog.Reason;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class KeyspaceTest {

    private final TestKeyspace test = TestKeyspace.small();
    private final Keyspace keyspace = test.keyspace();

    @AfterEach
    void close() {
        test.close();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 4047, 4048, 4049, 65_536, 1 << 20, (1 << 20) - 20, 5_000_000})
    void givenAValueOfAnySize_whenRead_thenItIsWhatWasPut(int bytes) {
        test.put("k", content(1, bytes));

        assertThat(test.get("k")).isEqualTo(content(1, bytes));
        assertThat(keyspace.info(key("k"))).isEqualTo(new KeyInfo(bytes, 0));
    }

    @Test
    void givenAValue_whenAnotherTakesItsKey_thenTheNewOneIsRead() {
        test.put("k", content(1, 100));
        test.put("k", content(2, 200));

        assertThat(test.get("k")).isEqualTo(content(2, 200));
        assertThat(keyspace.count()).isEqualTo(1);
    }

    @Test
    void givenAValueThatTheIndexHasNotHeardOf_whenItIsHeldAndGetsATime_thenItHasIt() {
        test.put("k", content(1, 100));
        Keyspace later = new Keyspace(
                test.cache(),
                Namespace.objects("objects", "default"),
                test.time(),
                test.time(),
                KeyspaceOptions.defaults(64L << 20));
        long at = later.nowMillis() + 100_000;
        try (PinnedValue held = later.get(key("k"))) {
            assertThat(held).isNotNull();
            assertThat(later.expireAt(key("k"), at, held)).isTrue();
        }
        assertThat(later.info(key("k"))).isEqualTo(new KeyInfo(100, at));
    }

    @Test
    void givenAPutThatIsNotCommitted_whenItIsClosed_thenTheOlderValueStays() {
        test.put("k", content(1, 100));
        try (PendingPut put = keyspace.put(key("k"), 50)) {
            assertThat(put.state()).isEqualTo(PendingPut.State.WRITING);
        }

        assertThat(test.get("k")).isEqualTo(content(1, 100));
    }

    @Test
    void givenBytesAreMissing_whenCommitted_thenItIsRefusedLoudly() {
        try (PendingPut put = keyspace.put(key("k"), 50)) {
            assertThatThrownBy(() -> put.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("50 of 50 bytes are missing");
        }
    }

    @Test
    void givenANote_whenTheValueIsRead_thenTheNoteComesWithIt() {
        TensorMetadata note = new TensorMetadata(3, 4, 1, 2, 32, 256, 1024);
        try (PendingPut put = keyspace.put(key("k"), 3)) {
            fill(put, new byte[3]);
            put.commit(0, note, PendingPut.Condition.ALWAYS);
        }

        try (PinnedValue value = keyspace.get(key("k"))) {
            assertThat(value).isNotNull();
            assertThat(value.tensorMetadata()).isEqualTo(note);
        }
    }

    @Test
    void givenTwoWriters_whenBothFinish_thenTheLastToCommitWinsAndNothingIsHeld() {
        try (PendingPut first = keyspace.put(key("k"), 3);
                PendingPut second = keyspace.put(key("k"), 2)) {
            fill(second, new byte[] {8, 9});
            second.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS);
            assertThat(test.get("k")).containsExactly(8, 9);

            fill(first, new byte[] {1, 2, 3});
            first.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS);
        }
        assertThat(test.get("k")).containsExactly(1, 2, 3);
        assertThat(keyspace.count()).isEqualTo(1);
        assertThat(keyspace.stats().writes().stored()).isEqualTo(2);
    }

    @Test
    void givenConditions_whenCommitted_thenOnlyThoseThatHoldStore() {
        assertThat(commit(PendingPut.Condition.IF_PRESENT)).isFalse();
        assertThat(commit(PendingPut.Condition.IF_ABSENT)).isTrue();
        assertThat(commit(PendingPut.Condition.IF_ABSENT)).isFalse();
        assertThat(commit(PendingPut.Condition.IF_PRESENT)).isTrue();
    }

    private boolean commit(PendingPut.Condition condition) {
        try (PendingPut put = keyspace.put(key("k"), 1)) {
            fill(put, new byte[1]);
            return put.commit(0, TensorMetadata.NONE, condition);
        }
    }

    @Test
    void givenAnExpiry_whenItsTimeComes_thenTheValueIsNotFoundEvenUnticked() {
        test.put("k", content(1, 10), keyspace.nowMillis() + 1000);

        test.time().advance(Duration.ofMillis(999));
        assertThat(test.get("k")).isNotNull();
        test.time().advance(Duration.ofMillis(1));
        assertThat(test.get("k")).isNull();
        assertThat(keyspace.exists(key("k"))).isFalse();
        assertThat(keyspace.stats().reads().of(Reason.EXPIRED))
                .as("look-ups that missed it")
                .isEqualTo(2);
    }

    @Test
    void givenExpiredKeys_whenTicked_thenTheStoreForgetsThem() {
        for (int i = 0; i < 50; i++) {
            test.put("k" + i, content(i, 10), keyspace.nowMillis() + 10);
        }
        test.put("stays", content(1, 10));

        test.time().advance(Duration.ofMillis(10));
        keyspace.tick();

        assertThat(keyspace.count()).isEqualTo(1);
        assertThat(test.cache().stats().records().live()).isEqualTo(1);
        assertThat(keyspace.stats().expiringKeys()).isZero();
    }

    @Test
    void givenAnExpiry_whenItIsMovedOrTakenAway_thenTheLastWordCounts() {
        test.put("k", content(1, 10), keyspace.nowMillis() + 1000);
        assertThat(keyspace.expireAt(key("k"), keyspace.nowMillis() + 5000)).isTrue();
        test.time().advance(Duration.ofSeconds(2));
        keyspace.tick();
        assertThat(test.get("k")).isNotNull();

        assertThat(keyspace.expireAt(key("k"), 0)).isTrue();
        test.time().advance(Duration.ofHours(1));
        assertThat(test.get("k")).isNotNull();
        assertThat(keyspace.expireAt(key("absent"), 1)).isFalse();
    }

    @Test
    void givenAnExpiredValue_whenANewOneTakesItsKey_thenItStays() {
        test.put("k", content(1, 10), keyspace.nowMillis() + 1000);
        test.time().advance(Duration.ofSeconds(2));
        test.put("k", content(2, 10));

        keyspace.tick();

        assertThat(test.get("k")).isEqualTo(content(2, 10));
    }

    @Test
    void givenKeys_whenDeletedOrCleared_thenTheyAreGoneFromTheListing() {
        for (int i = 0; i < 20; i++) {
            test.put("k" + i, content(i, 10));
        }
        assertThat(keyspace.delete(key("k3"))).isTrue();
        assertThat(keyspace.delete(key("k3"))).isFalse();
        assertThat(keyspace.count()).isEqualTo(19);

        assertThat(keyspace.clear()).isEqualTo(19);
        assertThat(keyspace.count()).isZero();
        assertThat(test.get("k1")).isNull();
    }

    @Test
    void givenMoreThanTheStoreHolds_whenListed_thenOnlyWhatIsHereIsListed() {
        for (int i = 0; i < 200; i++) {
            test.put("k" + i, content(i, 1 << 20));
        }

        Set<String> listed = list(7);

        assertThat(listed).hasSizeBetween(20, 64);
        assertThat(keyspace.count()).isEqualTo(listed.size());
        assertThat(listed).allSatisfy(name -> assertThat(test.get(name)).isNotNull());
        assertThat(test.get("k199")).isEqualTo(content(199, 1 << 20));
    }

    private Set<String> list(int run) {
        Set<String> listed = new HashSet<>();
        long cursor = 0;
        do {
            KeyPage page = keyspace.scan(cursor, run);
            page.keys().forEach(bytes -> listed.add(new String(bytes, ISO_8859_1)));
            cursor = page.next();
        } while (cursor != 0);
        return listed;
    }
}
