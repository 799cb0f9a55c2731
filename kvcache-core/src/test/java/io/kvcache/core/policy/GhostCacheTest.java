package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

final class GhostCacheTest {

    @Test
    void givenRememberedBlock_whenTaken_thenItsClassAndLastUseOnce() {
        GhostCache ghostCache = new GhostCache(100);
        ghostCache.put(-7, 17, 123_456, 200_000);
        ghostCache.put(8, 0, 5, 200_000);
        long entry = ghostCache.remove(-7);
        assertThat(GhostCache.classOf(entry)).isEqualTo(17);
        assertThat(GhostCache.lastUse(entry, 200_000))
                .isEqualTo(GhostCache.rounded(123_456))
                .isBetween(123_441L, 123_456L);
        assertThat(ghostCache.remove(-7)).isEqualTo(GhostCache.NONE);
        assertThat(GhostCache.classOf(ghostCache.remove(8))).isZero();
    }

    @Test
    void givenMoreBlocksThanPlaces_whenPut_thenTheOldestOfTheSetGoesAndIsTold() {
        GhostCache ghostCache = new GhostCache(64);
        Random random = new Random(3);
        int told = 0;
        for (int i = 0; i < 1000; i++) {
            long entry = ghostCache.put(random.nextLong(), 1, 16L * (i + 1), 16L * (i + 1));
            told += entry == GhostCache.NONE ? 0 : 1;
        }
        int[] left = {0};
        ghostCache.forEach(entry -> left[0] += entry == GhostCache.NONE ? 0 : 1);
        assertThat(left[0] + told).isEqualTo(1000);
        assertThat(left[0]).isBetween(ghostCache.capacity() * 9 / 10, ghostCache.capacity());
    }

    @Test
    void givenReadingsThatWrapAround_whenPutAndTaken_thenTheOldestGoesAndLastUsesAreRight() {
        GhostCache ghostCache = new GhostCache(64);
        long wrap = 1L << 43;
        Random random = new Random(6);
        ghostCache.put(7, 3, wrap - 16_000, wrap - 16_000);
        assertThat(GhostCache.lastUse(ghostCache.find(7), wrap + 16_000)).isEqualTo(wrap - 16_000);
        long latest = 0;
        for (int i = 1; i <= 1000; i++) {
            latest = random.nextLong();
            ghostCache.put(latest, 4, wrap + 16L * i, wrap + 16L * i);
        }
        assertThat(ghostCache.find(7)).as("the oldest").isEqualTo(GhostCache.NONE);
        assertThat(GhostCache.lastUse(ghostCache.find(latest), wrap + 20_000)).isEqualTo(wrap + 16_000);
    }

    @Test
    void givenStrangers_whenTaken_thenHardlyOneIsMistaken() {
        GhostCache ghostCache = new GhostCache(1 << 14);
        Random random = new Random(4);
        for (int i = 0; i < 1 << 14; i++) {
            ghostCache.put(random.nextLong(), 2, 1000 + i, 1000 + i);
        }
        int mistaken = 0;
        for (int i = 0; i < 100_000; i++) {
            mistaken += ghostCache.remove(random.nextLong()) == GhostCache.NONE ? 0 : 1;
        }
        assertThat(mistaken).as("8 of 65,536 strangers are expected at most").isLessThan(50);
    }
}
