package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

final class DepartedTest {

    @Test
    void givenRememberedBlock_whenTaken_thenItsClassAndLastUseOnce() {
        Departed departed = new Departed(100);
        departed.put(-7, 17, 123_456, 200_000);
        departed.put(8, 0, 5, 200_000);
        long entry = departed.take(-7);
        assertThat(Departed.classOf(entry)).isEqualTo(17);
        assertThat(Departed.lastUse(entry, 200_000))
                .isEqualTo(Departed.rounded(123_456))
                .isBetween(123_441L, 123_456L);
        assertThat(departed.take(-7)).isEqualTo(Departed.NONE);
        assertThat(Departed.classOf(departed.take(8))).isZero();
    }

    @Test
    void givenMoreBlocksThanPlaces_whenPut_thenTheOldestOfTheSetGoesAndIsTold() {
        Departed departed = new Departed(64);
        Random random = new Random(3);
        int told = 0;
        for (int i = 0; i < 1000; i++) {
            long entry = departed.put(random.nextLong(), 1, 16L * (i + 1), 16L * (i + 1));
            told += entry == Departed.NONE ? 0 : 1;
        }
        int[] left = {0};
        departed.forEach(entry -> left[0] += entry == Departed.NONE ? 0 : 1);
        assertThat(left[0] + told).isEqualTo(1000);
        assertThat(left[0]).isBetween(departed.capacity() * 9 / 10, departed.capacity());
    }

    @Test
    void givenReadingsThatWrapAround_whenPutAndTaken_thenTheOldestGoesAndLastUsesAreRight() {
        Departed departed = new Departed(64);
        long wrap = 1L << 43;
        Random random = new Random(6);
        departed.put(7, 3, wrap - 16_000, wrap - 16_000);
        assertThat(Departed.lastUse(departed.find(7), wrap + 16_000)).isEqualTo(wrap - 16_000);
        long latest = 0;
        for (int i = 1; i <= 1000; i++) {
            latest = random.nextLong();
            departed.put(latest, 4, wrap + 16L * i, wrap + 16L * i);
        }
        assertThat(departed.find(7)).as("the oldest").isEqualTo(Departed.NONE);
        assertThat(Departed.lastUse(departed.find(latest), wrap + 20_000)).isEqualTo(wrap + 16_000);
    }

    @Test
    void givenStrangers_whenTaken_thenHardlyOneIsMistaken() {
        Departed departed = new Departed(1 << 14);
        Random random = new Random(4);
        for (int i = 0; i < 1 << 14; i++) {
            departed.put(random.nextLong(), 2, 1000 + i, 1000 + i);
        }
        int mistaken = 0;
        for (int i = 0; i < 100_000; i++) {
            mistaken += departed.take(random.nextLong()) == Departed.NONE ? 0 : 1;
        }
        assertThat(mistaken).as("8 of 65,536 strangers are expected at most").isLessThan(50);
    }
}
