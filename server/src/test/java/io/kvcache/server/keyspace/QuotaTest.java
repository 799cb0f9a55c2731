package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class QuotaTest {

    private static final int VALUE = 60 << 10; // and what is kept behind it: 61,440 + 48 + a key, so 16 pages
    private static final int CHARGED = 16 * 4096;

    /// A key of LMCache's, without what makes it a half.
    private static final String CHUNK = "model@1@0@1c7e09ab55";

    private static TestKeyspace limited(long quotaBytes) {
        return new TestKeyspace(
                64L << 20,
                new KeyspaceOptions(
                        Duration.ofSeconds(2), 1 << 20, Duration.ZERO, quotaBytes, KeyspaceLimits.unlimited()));
    }

    private static byte[] value(int seed) {
        return TestKeyspace.content(seed, VALUE);
    }

    private static KeyspaceStats.Usage usage(TestKeyspace test) {
        return test.keyspace().stats().usage();
    }

    @Test
    void givenAFullQuota_whenMoreIsStored_thenTheLeastRecentlyUsedGoes() {
        try (TestKeyspace test = limited(4 * CHARGED)) {
            for (int i = 0; i < 4; i++) {
                test.put("k" + i, value(i));
            }
            assertThat(usage(test)).isEqualTo(new KeyspaceStats.Usage(4 * CHARGED, 4 * CHARGED, 0));

            test.get("k0");
            test.get("k2");
            test.put("k4", value(4));
            test.put("k5", value(5));

            assertThat(test.get("k1")).isNull();
            assertThat(test.get("k3")).isNull();
            for (int i : new int[] {0, 2, 4, 5}) {
                assertThat(test.get("k" + i)).isEqualTo(value(i));
            }
            assertThat(usage(test)).isEqualTo(new KeyspaceStats.Usage(4 * CHARGED, 4 * CHARGED, 2));
            assertThat(test.cache().stats().removals().quota()).isEqualTo(2);
            assertThat(test.cache().stats().removals().dropped()).isZero();
        }
    }

    @Test
    void givenAValueBeyondTheQuota_whenStored_thenItIsRefusedAndNothingGoes() {
        try (TestKeyspace test = limited(2 * CHARGED)) {
            test.put("k", value(1));
            assertThat(test.put("large", new byte[2 * CHARGED])).isEqualTo(PendingPut.State.REJECTED);
            assertThat(test.get("k")).isEqualTo(value(1));
        }
    }

    @Test
    void givenWritersThatHoldTheQuota_whenAnotherComes_thenItIsRefusedAndTheirRoomComesBack() {
        try (TestKeyspace test = limited(2 * CHARGED)) {
            PendingPut a = test.keyspace().put(TestKeyspace.key("a"), VALUE);
            PendingPut b = test.keyspace().put(TestKeyspace.key("b"), VALUE);
            assertThat(test.put("c", value(3))).isEqualTo(PendingPut.State.REJECTED);
            a.close();
            assertThat(test.put("c", value(3))).isEqualTo(PendingPut.State.WRITING);
            b.close();
            assertThat(usage(test).usedBytes()).isEqualTo(CHARGED);
        }
    }

    @Test
    void givenTwoHalves_whenOneGoesForTheQuota_thenTheOtherGoesWithIt() {
        try (TestKeyspace test = limited(3 * CHARGED)) {
            test.put(CHUNK + "kv_bytes", value(1));
            test.put(CHUNK + "metadata", value(2));
            test.put("y", value(3));
            test.put("z", value(4));
            assertThat(test.get(CHUNK + "kv_bytes")).isNull();
            assertThat(test.get(CHUNK + "metadata")).isNull();
            assertThat(usage(test).usedBytes()).isEqualTo(2 * CHARGED);
        }
    }

    @Test
    void givenManySteps_whenComparedWithAModel_thenTheSameKeysAreThere() {
        long seed = 20261120;
        Random random = new Random(seed);
        int most = 10;
        Map<String, Integer> model = new LinkedHashMap<>(16, 0.75f, true);
        try (TestKeyspace test = limited((long) most * CHARGED)) {
            for (int step = 0; step < 4000; step++) {
                String key = "k" + random.nextInt(30);
                switch (random.nextInt(4)) {
                    case 0 -> {
                        test.keyspace().delete(TestKeyspace.key(key));
                        model.remove(key);
                    }
                    case 1, 2 -> {
                        // Room is made before the older value of the key is gone.
                        if (model.size() == most) {
                            model.remove(model.keySet().iterator().next());
                        }
                        test.put(key, value(step));
                        model.put(key, step);
                    }
                    default -> {
                        Integer known = model.get(key);
                        assertThat(test.get(key))
                                .as("seed %d, step %d", seed, step)
                                .isEqualTo(known == null ? null : value(known));
                    }
                }
                assertThat(usage(test).usedBytes()).isEqualTo((long) model.size() * CHARGED);
            }
            List<String> keys = new ArrayList<>();
            test.keyspace()
                    .scan(0, 100)
                    .keys()
                    .forEach(each -> keys.add(new String(each, java.nio.charset.StandardCharsets.US_ASCII)));
            assertThat(keys).containsExactlyInAnyOrderElementsOf(model.keySet());
        }
    }
}
