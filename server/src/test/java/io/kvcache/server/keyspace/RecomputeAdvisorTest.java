package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.server.keyspace.ChunkSequenceTracker.RecomputeAdvisor;
import io.kvcache.server.keyspace.KeyspaceOptions.RecomputeEstimator;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/// A thousand bytes take a millisecond to read, and chunks of ten tokens one to compute, unless it
/// is said.
final class RecomputeAdvisorTest {

    private static RecomputeAdvisor advice(double tokensPerSecond, Duration deadline) {
        return new RecomputeAdvisor(
                new RecomputeEstimator(PrefillCost.ofTokenRate(tokensPerSecond), 10, deadline, bytes -> bytes * 1e3));
    }

    private static RecomputeAdvisor advice() {
        return advice(10_000, Duration.ofSeconds(1));
    }

    @Test
    void givenChunksThatAreReadSooner_whenLookedUp_thenAllAreToldOf() {
        RecomputeAdvisor advice = advice();
        for (int i = 0; i < 100; i++) {
            assertThat(advice.shouldLoad(i > 0, 900)).isTrue();
        }
    }

    @Test
    void givenChunksThatAreComputedSooner_whenLookedUp_thenNoneIsToldOf() {
        assertThat(advice().shouldLoad(false, 1100)).isFalse();
    }

    @Test
    void givenChunksInMemory_whenLookedUp_thenAllAreToldOfWhateverReadingTakes() {
        RecomputeAdvisor advice = advice(1e15, Duration.ofMillis(1));
        for (int i = 0; i < 100; i++) {
            assertThat(advice.shouldLoad(i > 0, 0)).isTrue();
        }
    }

    @Test
    void givenADeadline_whenTheWholeLookUpWouldTakeLonger_thenItEndsBefore() {
        RecomputeAdvisor advice = advice(1, Duration.ofMillis(3));
        assertThat(advice.shouldLoad(false, 1000)).isTrue();
        assertThat(advice.shouldLoad(true, 1000)).isTrue();
        assertThat(advice.shouldLoad(true, 1000)).isTrue();
        assertThat(advice.shouldLoad(true, 1000)).isFalse();
        assertThat(advice.shouldLoad(false, 1000)).as("another one").isTrue();
    }

    @Test
    void givenADearerEnd_whenTheChunksBeforeAreInMemory_thenItsPlaceCounts() {
        RecomputeEstimator dearer =
                new RecomputeEstimator(new PrefillCost(1e-4, 1e-5), 10, Duration.ofSeconds(1), bytes -> bytes * 1e3);
        RecomputeAdvisor first = new RecomputeAdvisor(dearer);
        assertThat(first.shouldLoad(false, 2000)).isFalse();
        RecomputeAdvisor tenth = new RecomputeAdvisor(dearer);
        for (int i = 0; i < 9; i++) {
            assertThat(tenth.shouldLoad(i > 0, 0)).isTrue();
        }
        assertThat(tenth.shouldLoad(true, 2000)).isTrue();
    }

    @Test
    void givenADiskOfWhichNothingIsKnown_whenLookedUp_thenItIsToldOf() {
        RecomputeAdvisor advice = new RecomputeAdvisor(
                new RecomputeEstimator(PrefillCost.ofTokenRate(1e15), 10, Duration.ofMillis(1), bytes -> 0));
        assertThat(advice.shouldLoad(false, 1000)).isTrue();
    }

    @Test
    void givenChunksThatAreComputedSooner_whenAskedOften_thenOneIsToldOfToLearn() {
        RecomputeAdvisor advice = advice();
        int told = 0;
        for (int i = 0; i < 128; i++) {
            told += advice.shouldLoad(false, 5000) ? 1 : 0;
        }
        assertThat(told).isEqualTo(2);
    }
}
