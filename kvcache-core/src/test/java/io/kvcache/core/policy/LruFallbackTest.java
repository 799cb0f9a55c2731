package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.policy.LruFallback.ShadowLru;
import java.util.LinkedHashMap;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class LruFallbackTest {

    @Test
    void givenRandomUses_whenAllAreSampled_thenTheShadowIsExactlyLru() {
        ShadowLru shadow = new ShadowLru();
        LinkedHashMap<Long, Boolean> lru = new LinkedHashMap<>(16, 0.75f, true);
        Random random = new Random(2);
        shadow.setLimit(500);
        for (int i = 0; i < 50_000; i++) {
            long key = (long) Math.abs(random.nextGaussian() * 600);
            boolean expected = lru.get(key) != null;
            lru.put(key, true);
            if (lru.size() > 500) {
                lru.remove(lru.keySet().iterator().next());
            }
            assertThat(shadow.isSampled(key)).isTrue();
            assertThat(shadow.recordUse(key)).as("use %d", i).isEqualTo(expected);
        }
        assertThat(shadow.size()).isEqualTo(lru.size());
    }

    @Test
    void givenMoreBlocksThanTheTableHolds_whenSampled_thenNearlyTheHitRatioOfTheWhole() {
        int blocks = 60_000;
        ShadowLru shadow = new ShadowLru();
        LinkedHashMap<Long, Boolean> lru = new LinkedHashMap<>(16, 0.75f, true);
        Random random = new Random(3);
        long hits = 0;
        long sampled = 0;
        long shadowHits = 0;
        int uses = 600_000;
        for (int i = 0; i < uses; i++) {
            long key = (long) Math.abs(random.nextGaussian() * blocks);
            boolean counted = i >= uses / 2;
            hits += lru.get(key) != null && counted ? 1 : 0;
            lru.put(key, true);
            if (lru.size() > blocks) {
                lru.remove(lru.keySet().iterator().next());
                shadow.setLimit(blocks);
            }
            if (shadow.isSampled(key)) {
                sampled += counted ? 1 : 0;
                shadowHits += shadow.recordUse(key) && counted ? 1 : 0;
            }
        }
        assertThat(shadow.sampleRatio()).isLessThan(0.2);
        assertThat(shadow.size()).isLessThanOrEqualTo(ShadowLru.MAX_SAMPLE);
        assertThat((double) shadowHits / sampled).isCloseTo(2.0 * hits / uses, within(0.02));
    }

    /// First nothing that is new comes back, then everything new comes back once and soon.
    @Test
    void givenLoadThatTurnsAround_whenLruFindsMore_thenItIsFollowedForAWhile() {
        FlatCache cache = new FlatCache(PolicyKind.IMPORTANCE, 4000, 1000);
        FlatCache lru = new FlatCache(PolicyKind.LRU, 4000, 1000);
        long fresh = 1 << 20;
        int lost = 0;
        boolean followed = false;
        for (int i = 0; i < 400_000; i++) {
            boolean habit = i < 100_000 || i >= 200_000;
            long key;
            if (habit) {
                key = i % 2 == 0 ? i / 2 % 1500 : ++fresh;
            } else {
                key = i % 2 == 0 ? ++fresh : fresh - 300;
            }
            boolean hit = cache.use(key);
            boolean lruHit = lru.use(key);
            lost += (lruHit ? 1 : 0) - (hit ? 1 : 0);
            followed |= cache.policy().fallbackReport().followsLru();
        }
        LruFallback.Report report = cache.policy().fallbackReport();
        System.out.println("guard: " + report + ", lost to LRU in all " + lost);
        assertThat(followed).isTrue();
        assertThat(report.switches()).isPositive();
        assertThat(report.usesAsLru()).as("and it was left again").isLessThan(report.uses() / 2);
        assertThat(report.followsLru()).isFalse();
        assertThat(lost).as("half a point of 400,000 uses").isLessThan(2000);
    }

    @Test
    void givenBlocksThatAreDroppedOrReplaced_whenPutAgain_thenNeitherCountsThemAsFound() {
        FlatCache cache = new FlatCache(PolicyKind.IMPORTANCE, 4000, 1000);
        for (int i = 0; i <= 1000; i++) {
            cache.use(i);
        }
        for (int i = 0; i < 40_000; i++) {
            if (cache.has(i % 1000)) {
                cache.drop(i % 1000);
                cache.use(i % 1000);
            }
        }
        LruFallback.Report report = cache.policy().fallbackReport();
        assertThat(report.sampledUses()).isGreaterThan(30_000);
        assertThat(report.switches()).isZero();
        assertThat(report.lruHits()).as("nothing was ever looked up").isZero();
    }

    @Test
    void givenPolicyThatDoesNotLearn_whenAsked_thenNothing() {
        assertThat(new FlatCache(PolicyKind.LRU, 10, 5).policy().fallbackReport())
                .isEqualTo(LruFallback.Report.EMPTY);
    }
}
