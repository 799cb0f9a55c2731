package io.kvcache.server.keyspace;

import static io.kvcache.server.keyspace.TestKeyspace.content;
import static io.kvcache.server.keyspace.TestKeyspace.key;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class PromisesTest {

    private static final int MIB = 1 << 20;

    private final TestKeyspace test = TestKeyspace.small();
    private final Keyspace keyspace = test.keyspace();

    @AfterEach
    void close() {
        test.close();
    }

    @Test
    void givenAPositiveAnswer_whenTheStoreOverflows_thenTheValueIsStillThere() {
        test.put("asked", content(1, MIB));
        assertThat(keyspace.exists(key("asked"))).isTrue();
        overflow();

        assertThat(test.get("asked")).isEqualTo(content(1, MIB));
        assertThat(keyspace.stats().promises().given()).isEqualTo(1);
    }

    @Test
    void givenAHalfThatExists_whenTheStoreOverflows_thenBothAreStillThere() {
        test.put("xkv_bytes", content(1, MIB));
        test.put("xmetadata", content(2, 28));
        assertThat(keyspace.exists(key("xmetadata"))).isTrue();
        overflow();

        assertThat(test.get("xkv_bytes")).isEqualTo(content(1, MIB));
    }

    @Test
    void givenAPromise_whenAskedAgainAndAgain_thenItEndsAllTheSame() {
        test.put("asked", content(1, MIB));
        keyspace.exists(key("asked"));
        test.time().pass(Duration.ofMillis(1500));
        keyspace.exists(key("asked"));
        test.time().pass(Duration.ofMillis(500));
        keyspace.tick();

        assertThat(keyspace.stats().promises().heldBytes()).isZero();
        assertThat(keyspace.exists(key("asked"))).isTrue();
        assertThat(keyspace.stats().promises().heldBytes()).isZero();
        overflow();
        assertThat(test.get("asked")).isNull();
    }

    @Test
    void givenALapsedPromise_whenSomeMomentsHavePassed_thenTheKeyCanBePromisedAgain() {
        test.put("asked", content(1, MIB));
        keyspace.exists(key("asked"));
        test.time().pass(Duration.ofSeconds(2));
        keyspace.tick();
        test.time().pass(Duration.ofSeconds(8));
        keyspace.tick();

        keyspace.exists(key("asked"));

        assertThat(keyspace.stats().promises().heldBytes()).isEqualTo(MIB + Trailer.BYTES);
    }

    @Test
    void givenAFetchWithinTheMoment_whenAskedAfterIt_thenTheKeyIsPromisedAgain() {
        test.put("asked", content(1, MIB));
        keyspace.exists(key("asked"));
        test.get("asked");
        test.time().pass(Duration.ofSeconds(2));
        keyspace.tick();

        keyspace.exists(key("asked"));

        assertThat(keyspace.stats().promises().given()).isEqualTo(2);
    }

    @Test
    void givenMoreThanAQuarterAskedFor_whenTheStoreOverflows_thenPutsGoOnAndBrokenPromisesAreCounted() {
        for (int i = 0; i < 40; i++) {
            test.put("asked" + i, content(i, MIB));
            assertThat(keyspace.exists(key("asked" + i))).isTrue();
        }
        assertThat(keyspace.stats().promises().heldBytes()).isLessThanOrEqualTo(16 * MIB);
        overflow();

        int missed = 0;
        for (int i = 0; i < 40; i++) {
            missed += test.get("asked" + i) == null ? 1 : 0;
        }
        assertThat(missed).isBetween(1, 25);
        assertThat(keyspace.stats().promises().broken()).isEqualTo(missed);
    }

    @Test
    void givenAPromise_whenTheOwnerDeletes_thenNothingIsHeldOrBroken() {
        test.put("asked", content(1, MIB));
        keyspace.exists(key("asked"));
        keyspace.delete(key("asked"));

        assertThat(test.get("asked")).isNull();
        assertThat(keyspace.stats().promises().heldBytes()).isZero();
        assertThat(keyspace.stats().promises().broken()).isZero();
    }

    private void overflow() {
        for (int i = 0; i < 150; i++) {
            assertThat(test.put("other" + i, content(i, MIB))).isEqualTo(PendingPut.State.WRITING);
        }
    }
}
