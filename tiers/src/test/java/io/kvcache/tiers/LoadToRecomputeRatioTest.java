package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.tiers.DiskLoader.LoadOrComputePolicy.LoadToRecomputeRatio;
import org.junit.jupiter.api.Test;

final class LoadToRecomputeRatioTest {

    private final LoadToRecomputeRatio worth = new LoadToRecomputeRatio();

    @Test
    void givenOneRequest_whenLearned_thenItsShare() {
        assertThat(worth.record(300, 1000)).isCloseTo(0.3, within(1e-9));
    }

    @Test
    void givenManyAlike_whenOneCameBesideABacklog_thenTheShareHardlyMoves() {
        for (int i = 0; i < 200; i++) {
            worth.record(300, 1000);
        }
        assertThat(worth.record(1000, 1000)).isBetween(0.3, 0.35);
    }

    @Test
    void givenADiskThatHasBecomeSlower_whenAskedOften_thenTheShareFollows() {
        for (int i = 0; i < 100; i++) {
            worth.record(100, 1000);
        }
        double share = 0;
        for (int i = 0; i < 100; i++) {
            share = worth.record(800, 1000);
        }
        assertThat(share).isBetween(0.7, 0.8);
    }

    @Test
    void givenAShortLoad_whenALongOneCame_thenTheLongOneCountsForMore() {
        worth.record(10, 10);
        assertThat(worth.record(2000, 10_000)).isCloseTo(0.2, within(0.01));
    }

    @Test
    void givenExtremes_whenLearned_thenFromATwentiethToOne() {
        assertThat(worth.record(0, 1000)).isEqualTo(0.05);
        assertThat(worth.record(1e12, 1)).isEqualTo(1);
    }
}
