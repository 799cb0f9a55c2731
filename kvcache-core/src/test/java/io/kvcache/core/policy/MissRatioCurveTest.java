package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("slow")
final class MissRatioCurveTest {

    private static final long PAGE = 4096;

    /// LRU by bytes, as it is.
    private static final class Lru {
        private final Map<Long, Long> held = new LinkedHashMap<>(16, 0.75f, true);
        private final long capacity;
        private long bytes;
        private long hits;

        Lru(long capacity) {
            this.capacity = capacity;
        }

        void use(long key, long size, boolean counted) {
            if (held.containsKey(key)) {
                hits += counted ? 1 : 0;
            }
            Long before = held.remove(key);
            bytes += size - (before == null ? 0 : before);
            held.put(key, size);
            var eldest = held.entrySet().iterator();
            while (bytes > capacity) {
                bytes -= eldest.next().getValue();
                eldest.remove();
            }
        }
    }

    private static long mixed(long number) {
        long mixed = (number + 1) * 0x9E3779B97F4A7C15L;
        mixed = (mixed ^ mixed >>> 30) * 0xBF58476D1CE4E5B9L;
        return mixed ^ mixed >>> 31;
    }

    /// A few keys are used much, most of them rarely.
    private static long skewed(SplittableRandom random, int keys) {
        return (long) Math.pow(keys, random.nextDouble());
    }

    @Test
    void givenKeysInALoop_whenThinnedAgainAndAgain_thenSomeAreLeftAndTheAnswerIsTheSame() {
        MissRatioCurve curve = new MissRatioCurve(4000 * PAGE, 16_000 * PAGE);
        for (int use = 0; use < 40 * 8000; use++) {
            curve.startRequest();
            curve.recordUse(mixed(use % 8000), PAGE);
            if (use % 1000 == 0) {
                curve.reduceSample();
            }
        }
        assertThat(curve.sampleRatio()).isLessThanOrEqualTo(0.5);
        assertThat(curve.size()).isGreaterThanOrEqualTo(MissRatioCurve.MIN_SAMPLE / 2);
        assertThat(curve.points()[0].hitRatio()).isLessThan(0.05);
        assertThat(curve.points()[1].hitRatio()).isGreaterThan(0.95);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void givenFewerKeysThanTheSampleHolds_whenUsed_thenExactlyWhatLruFinds(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        long[] capacities = {20 * PAGE, 100 * PAGE, 400 * PAGE};
        MissRatioCurve curve = new MissRatioCurve(capacities);
        Lru[] lrus = Arrays.stream(capacities).mapToObj(Lru::new).toArray(Lru[]::new);
        int uses = 30_000;
        int counted = 0;
        for (int i = 0; i < uses; i++) {
            long key = mixed(skewed(random, 1000));
            boolean counts = random.nextInt(10) > 0;
            curve.startRequest();
            if (counts) {
                curve.recordUse(key, PAGE);
                counted++;
            } else {
                curve.touch(key, PAGE);
            }
            for (Lru lru : lrus) {
                lru.use(key, PAGE, counts);
            }
        }
        assertThat(curve.sampleRatio()).isOne();
        MissRatioCurve.Point[] points = curve.points();
        for (int i = 0; i < capacities.length; i++) {
            assertThat(points[i].hitRatio())
                    .as("seed %d, %d bytes", seed, capacities[i])
                    .isCloseTo((double) lrus[i].hits / counted, within(1e-9));
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {4, 5})
    void givenManyMoreKeysThanTheSampleHolds_whenUsed_thenNearWhatLruFinds(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        int keys = 400_000;
        long[] capacities = {10_000 * PAGE, 40_000 * PAGE, 160_000 * PAGE};
        MissRatioCurve curve = new MissRatioCurve(capacities);
        Lru[] lrus = Arrays.stream(capacities).mapToObj(Lru::new).toArray(Lru[]::new);
        int uses = 600_000;
        for (int i = 0; i < uses; i++) {
            long number = random.nextInt(4) == 0 ? random.nextInt(keys) : skewed(random, keys);
            long size = PAGE * (1 + number % 3);
            long key = mixed(number);
            curve.startRequest();
            if (curve.isSampled(key)) {
                curve.recordUse(key, size);
            } else {
                curve.addUnsampled(1);
            }
            for (Lru lru : lrus) {
                lru.use(key, size, true);
            }
        }
        assertThat(curve.sampleRatio()).isLessThan(0.5);
        assertThat(curve.size()).isLessThanOrEqualTo(MissRatioCurve.MAX_SAMPLE);
        MissRatioCurve.Point[] points = curve.points();
        for (int i = 0; i < capacities.length; i++) {
            assertThat(points[i].hitRatio())
                    .as("seed %d, %d bytes", seed, capacities[i])
                    .isCloseTo((double) lrus[i].hits / uses, within(0.02));
        }
    }

    @Test
    void givenOneRequestLargerThanMemory_whenUsedAgain_thenItsOwnKeysDoNotPushEachOtherOut() {
        MissRatioCurve curve = new MissRatioCurve(10 * PAGE);
        for (int round = 0; round < 2; round++) {
            curve.startRequest();
            for (long key = 9; key >= 0; key--) {
                curve.recordUse(mixed(key), PAGE);
            }
        }
        assertThat(curve.points()[0].hitRatio()).isEqualTo(0.5);
        assertThat(curve.uses()).isEqualTo(20);
    }

    @Test
    void givenCapacitiesThatDoNotAscend_whenMade_thenRefused() {
        assertThatThrownBy(() -> new MissRatioCurve(4, 4))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("[4, 4]");
    }
}
