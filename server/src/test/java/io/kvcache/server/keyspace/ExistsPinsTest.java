package io.kvcache.server.keyspace;

import static io.kvcache.server.keyspace.TestKeyspace.content;
import static io.kvcache.server.keyspace.TestKeyspace.key;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("slow")
final class ExistsPinsTest {

    private static final int MIB = 1 << 20;

    /// A key of LMCache's, without what makes it a half.
    private static final String CHUNK = "model@1@0@1c7e09ab55";

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
        test.put(CHUNK + "kv_bytes", content(1, MIB));
        test.put(CHUNK + "metadata", content(2, 28));
        assertThat(keyspace.exists(key(CHUNK + "metadata"))).isTrue();
        overflow();

        assertThat(test.get(CHUNK + "kv_bytes")).isEqualTo(content(1, MIB));
    }

    @Test
    void givenAPromise_whenAskedAgain_thenItHoldsForAMomentFromThenAndNoLonger() {
        test.put("asked", content(1, MIB));
        keyspace.exists(key("asked"));
        test.time().advance(Duration.ofMillis(1500));
        assertThat(keyspace.exists(key("asked"))).isTrue();
        test.time().advance(Duration.ofMillis(1900));
        keyspace.tick();
        overflow();
        assertThat(test.get("asked")).isEqualTo(content(1, MIB));

        test.time().advance(Duration.ofMillis(100));
        keyspace.tick();
        assertThat(keyspace.stats().promises().heldBytes()).isZero();
        overflow();
        assertThat(test.get("asked")).isNull();
    }

    @Test
    void givenAPromiseThatIsOver_whenAskedAgain_thenItIsPromisedAtOnce() {
        test.put("asked", content(1, MIB));
        keyspace.exists(key("asked"));
        test.time().advance(Duration.ofSeconds(2));
        keyspace.tick();
        assertThat(keyspace.stats().promises().heldBytes()).isZero();

        assertThat(keyspace.exists(key("asked"))).isTrue();

        overflow();
        assertThat(test.get("asked")).isEqualTo(content(1, MIB));
    }

    @Test
    void givenAPromise_whenTheValueIsReplaced_thenTheNewOneIsKeptToItsEnd() {
        test.put("asked", content(1, MIB));
        keyspace.exists(key("asked"));
        test.time().advance(Duration.ofMillis(1900));
        test.put("asked", content(2, MIB));
        overflow();
        assertThat(test.get("asked")).isEqualTo(content(2, MIB));

        test.time().advance(Duration.ofMillis(100));
        keyspace.tick();
        assertThat(keyspace.stats().promises().heldBytes()).isZero();
    }

    @Test
    void givenAFetchWithinTheMoment_whenAskedAfterIt_thenTheKeyIsPromisedAgain() {
        test.put("asked", content(1, MIB));
        keyspace.exists(key("asked"));
        test.get("asked");
        test.time().advance(Duration.ofSeconds(2));
        keyspace.tick();

        keyspace.exists(key("asked"));

        assertThat(keyspace.stats().promises().given()).isEqualTo(2);
    }

    @Test
    void givenAStoreThatEvicts_whenMoreIsAskedForThanCanBeKept_thenNoYesIsBroken() {
        overflow();
        keyspace.tick();
        List<String> told = new ArrayList<>();
        int refused = 0;
        for (int i = 0; i < 60; i++) {
            String name = "asked" + i;
            test.put(name, content(i, MIB));
            if (keyspace.exists(key(name))) {
                told.add(name);
            } else {
                refused++;
            }
        }
        assertThat(told).hasSizeBetween(31, 32);
        assertThat(keyspace.stats().promises().heldBytes()).isLessThanOrEqualTo(32 * MIB);
        assertThat(keyspace.stats().promises().declined()).isEqualTo(refused);
        overflow();

        told.forEach(name -> assertThat(test.get(name)).as(name).isNotNull());
        assertThat(keyspace.stats().promises().broken()).isZero();
    }

    @Test
    void givenAStoreThatDoesNotEvict_whenMoreIsAskedForThanCanBeKept_thenAllOfItIsSaidToBeHere() {
        for (int i = 0; i < 50; i++) {
            test.put("asked" + i, content(i, MIB - 100));
        }
        for (int i = 0; i < 50; i++) {
            assertThat(keyspace.exists(key("asked" + i))).isTrue();
        }
        assertThat(keyspace.stats().promises().bare()).isBetween(17L, 19L);
        assertThat(keyspace.stats().promises().declined()).isZero();
        overflow();

        int missed = 0;
        for (int i = 0; i < 50; i++) {
            missed += test.get("asked" + i) == null ? 1 : 0;
        }
        assertThat(missed).isBetween(1, 19);
        assertThat(keyspace.stats().promises().broken()).isEqualTo(missed);
        keyspace.tick();
        test.time().advance(Duration.ofSeconds(2));
        keyspace.tick();
        assertThat(keyspace.stats().promises().heldBytes()).isZero();
    }

    @Test
    void givenAQuotaFullOfWhatWasFetched_whenMoreIsAskedFor_thenThatMakesRoom() {
        overflow();
        keyspace.tick();
        for (int i = 0; i < 100; i++) {
            test.put("asked" + i, content(i, MIB));
            assertThat(keyspace.exists(key("asked" + i))).as("asked " + i).isTrue();
            assertThat(test.get("asked" + i)).isNotNull();
        }
        assertThat(keyspace.stats().promises().heldBytes()).isLessThanOrEqualTo(32 * MIB);
    }

    @Test
    void givenAValueThatOneClientFetched_whenAnotherHasAskedToo_thenItStaysForThatOne() {
        overflow();
        keyspace.tick();
        test.put("both", content(7, MIB));
        keyspace.exists(key("both"));
        keyspace.exists(key("both"));
        assertThat(test.get("both")).isNotNull();
        for (int i = 0; i < 60; i++) {
            test.put("asked" + i, content(i, MIB));
            keyspace.exists(key("asked" + i));
        }
        overflow();
        assertThat(test.get("both")).isEqualTo(content(7, MIB));
    }

    @Test
    void givenATenantWithAQuota_whenItWritesMore_thenWhatItWasPromisedStays() {
        try (TestKeyspace limited = new TestKeyspace(
                64L << 20,
                new KeyspaceOptions(
                        Duration.ofSeconds(2), 32 * MIB, Duration.ZERO, 8 * MIB, KeyspaceLimits.unlimited()))) {
            limited.put("asked", content(1, MIB));
            assertThat(limited.keyspace().exists(key("asked"))).isTrue();
            for (int i = 0; i < 30; i++) {
                assertThat(limited.put("other" + i, content(i, MIB))).isEqualTo(PendingPut.State.WRITING);
            }
            assertThat(limited.get("asked")).isEqualTo(content(1, MIB));
        }
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
