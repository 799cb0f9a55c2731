package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.Namespace;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Namespaces with weights that want more than there is.
@Tag("slow")
final class MemoryWeightsTest {

    private static final long HOST_BYTES = 256L << 20;
    private static final int RECORDS = 1 << 14;
    private static final long MIN_CHARGE = HOST_BYTES / RECORDS;
    private static final int MIB = 1 << 20;

    private final Namespace heavy = Namespace.objects("objects", "heavy");
    private final Namespace light = Namespace.objects("objects", "light");
    private final Namespace third = Namespace.objects("objects", "third");
    private final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes(HOST_BYTES)
            .records(RECORDS)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .closeWait(Duration.ZERO)
            .build();

    MemoryWeightsTest() {
        cache.register(heavy);
        cache.setWeight(heavy, 3);
        cache.register(light);
        cache.setWeight(light, 1);
    }

    @AfterEach
    void close() {
        cache.validate();
        cache.close();
    }

    private PutOutcome put(Namespace namespace, int key, int bytes) {
        byte[] name = ByteBuffer.allocate(Integer.BYTES).putInt(key).array();
        try (ObjectWriter writer = cache.putObject(namespace, name, bytes, KvCache.NO_WAIT)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                writer.seal();
            }
            return writer.outcome();
        }
    }

    private int count(Namespace namespace) {
        return cache.objects(namespace).list().size();
    }

    private long held(Namespace namespace) {
        return cache.objects(namespace).list().stream()
                .mapToLong(MemoryWeightsTest::charge)
                .sum();
    }

    private static long charge(ObjectCatalog.Entry entry) {
        return charge(entry.bytes());
    }

    private static long charge(long bytes) {
        return Math.max(MIN_CHARGE, (bytes + 4095) / 4096 * 4096);
    }

    @Test
    void givenNobodyElse_whenOneStoresAll_thenItMayHoldAll() {
        for (int i = 0; i < 300; i++) {
            put(light, i, MIB - 4);
        }
        assertThat(count(light)).isEqualTo(256);
    }

    @Test
    void givenAFullStore_whenTheOtherComes_thenItGetsItsShareAndNoMore() {
        for (int i = 0; i < 256; i++) {
            put(light, i, MIB - 4);
        }
        for (int i = 0; i < 1000; i++) {
            assertThat(put(heavy, i, MIB - 4)).isEqualTo(PutOutcome.RESERVED);
        }
        assertThat(count(light)).isEqualTo(64);
        assertThat(count(heavy)).isEqualTo(192);
    }

    @Test
    void givenValuesUnusedForLong_whenAnotherStreamsPast_thenThoseWithinTheShareStay() {
        for (int i = 0; i < 150; i++) {
            put(heavy, i, MIB - 4);
        }
        for (int i = 0; i < 5000; i++) {
            put(light, i, MIB - 4);
        }
        assertThat(count(heavy)).isEqualTo(150);
        assertThat(count(light)).isEqualTo(106);
    }

    @Test
    @Tag("slow")
    void givenManySmallValues_whenStoredByOne_thenTheyTakeNoRecordsFromTheOther() {
        for (int i = 0; i < 100; i++) {
            put(heavy, i, 1000);
        }
        for (int i = 0; i < 4 * RECORDS; i++) {
            put(light, i, 1);
        }
        assertThat(count(heavy)).isEqualTo(100);
    }

    @Test
    void givenValuesOfAllSizes_whenManyAreStored_thenNobodyBeyondHisShareTakesFromOneWithin() {
        cache.register(third); // has no weight, so a weight of 1
        List<Namespace> all = List.of(heavy, light, third);
        long[] shares = {HOST_BYTES / 5 * 3, HOST_BYTES / 5, HOST_BYTES / 5};
        long seed = 20261120;
        Random random = new Random(seed);
        int refused = 0;
        put(third, -1, 1); // from the beginning, so that its weight counts
        for (int step = 0; step < 3000; step++) {
            int who = random.nextInt(3);
            int bytes = 1
                    + random.nextInt(
                            switch (random.nextInt(4)) {
                                case 0 -> 4000;
                                case 1 -> 60_000;
                                case 2 -> 3 * MIB;
                                default -> 20 * MIB;
                            });
            long[] before = {held(heavy), held(light), held(third)};
            boolean beyond = before[who] + charge(bytes + Integer.BYTES) > shares[who];
            refused += put(all.get(who), random.nextInt(2000), bytes) == PutOutcome.NO_ROOM ? 1 : 0;
            for (int other = 0; other < 3 && beyond; other++) {
                if (other != who && before[other] <= shares[other]) {
                    assertThat(held(all.get(other)))
                            .as("seed %d, step %d: %d took from %d", seed, step, who, other)
                            .isEqualTo(before[other]);
                }
            }
            if (step % 100 == 0) {
                cache.validate();
            }
        }
        assertThat(refused).as("most find room among their own").isLessThan(1500);
    }

    @Test
    void givenANamespaceThatHoldsSomething_whenItGetsAWeight_thenThatIsRefused() {
        cache.register(third);
        put(third, 1, 1);
        assertThatThrownBy(() -> cache.setWeight(third, 2)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> cache.setWeight(heavy, 0)).hasMessageContaining("it takes 1 to 1000");
    }
}
