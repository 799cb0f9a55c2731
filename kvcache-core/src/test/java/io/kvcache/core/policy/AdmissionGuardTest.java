package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class AdmissionGuardTest {

    private static final int OLD = 0;
    private static final int NEW = 1;

    private long now;

    /// Of a loop that is longer than the cache, LRU keeps nothing and one that declines keeps a part.
    private void loop(AdmissionGuard guard, int blocks, int rounds) {
        for (int i = 0; i < blocks * rounds; i++) {
            guard.onUse(1 + i % blocks, OLD, now++);
        }
    }

    /// Blocks that come back soon, but are taken for ones that do not.
    private void crowd(AdmissionGuard guard, Random random, int blocks, int uses) {
        for (int i = 0; i < uses; i++) {
            long newest = now / 2;
            long block = i % 2 == 0 ? newest : newest - 1 - random.nextInt(blocks / 4);
            guard.onUse(1_000_000 + block, NEW, now++);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {4096, 20_000})
    void givenTwoSmallCaches_whenOneFindsMore_thenItIsFollowedUntilTheOtherDoes(int blocks) {
        AdmissionGuard guard = new AdmissionGuard((kind, age) -> kind == OLD ? age : -1);
        assertThat(guard.isDeclining()).isFalse();
        guard.onFull(blocks);
        loop(guard, 2 * blocks, 12 + 20_000 / blocks);
        assertThat(guard.isDeclining()).isTrue();
        crowd(guard, new Random(3), blocks, 40 * blocks + 20_000);
        assertThat(guard.isDeclining()).isFalse();
        loop(guard, 2 * blocks, 40 + 40_000 / blocks);
        assertThat(guard.isDeclining()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(ints = {100, 5000})
    void givenBlocksThatAreDropped_whenUsedAgain_thenNeitherHasThem(int blocks) {
        AdmissionGuard guard = new AdmissionGuard((kind, age) -> 1.0 / (1 + age));
        guard.onFull(blocks);
        for (int round = 0; round < 50; round++) {
            for (int block = 0; block < blocks; block++) {
                guard.onUse(block, OLD, now++);
            }
            for (int block = 0; block < blocks; block++) {
                guard.onRemoved(block);
            }
        }
        assertThat(guard.isDeclining()).isFalse();
    }
}
