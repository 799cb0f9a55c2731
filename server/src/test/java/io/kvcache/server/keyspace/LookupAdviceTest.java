package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.cost.PrefillCost;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/// A thousand bytes take a millisecond to read, and chunks of ten tokens one to compute, unless it
/// is said.
final class LookupAdviceTest {

    private static LookupAdvice advice(double tokensPerSecond, Duration deadline) {
        return new LookupAdvice(
                new PrefillTerms(PrefillCost.ofTokenRate(tokensPerSecond), 10, deadline, bytes -> bytes * 1e3));
    }

    private static LookupAdvice advice() {
        return advice(10_000, Duration.ofSeconds(1));
    }

    @Test
    void givenChunksThatAreReadSooner_whenLookedUp_thenAllAreToldOf() {
        LookupAdvice advice = advice();
        for (int i = 0; i < 100; i++) {
            assertThat(advice.isWorthReading(i > 0, 900)).isTrue();
        }
    }

    @Test
    void givenChunksThatAreComputedSooner_whenLookedUp_thenNoneIsToldOf() {
        assertThat(advice().isWorthReading(false, 1100)).isFalse();
    }

    @Test
    void givenChunksInMemory_whenLookedUp_thenAllAreToldOfWhateverReadingTakes() {
        LookupAdvice advice = advice(1e15, Duration.ofMillis(1));
        for (int i = 0; i < 100; i++) {
            assertThat(advice.isWorthReading(i > 0, 0)).isTrue();
        }
    }

    @Test
    void givenADeadline_whenTheWholeLookUpWouldTakeLonger_thenItEndsBefore() {
        LookupAdvice advice = advice(1, Duration.ofMillis(3));
        assertThat(advice.isWorthReading(false, 1000)).isTrue();
        assertThat(advice.isWorthReading(true, 1000)).isTrue();
        assertThat(advice.isWorthReading(true, 1000)).isTrue();
        assertThat(advice.isWorthReading(true, 1000)).isFalse();
        assertThat(advice.isWorthReading(false, 1000)).as("another one").isTrue();
    }

    @Test
    void givenADearerEnd_whenTheChunksBeforeAreInMemory_thenItsPlaceCounts() {
        PrefillTerms dearer =
                new PrefillTerms(new PrefillCost(1e-4, 1e-5), 10, Duration.ofSeconds(1), bytes -> bytes * 1e3);
        LookupAdvice first = new LookupAdvice(dearer);
        assertThat(first.isWorthReading(false, 2000)).isFalse();
        LookupAdvice tenth = new LookupAdvice(dearer);
        for (int i = 0; i < 9; i++) {
            assertThat(tenth.isWorthReading(i > 0, 0)).isTrue();
        }
        assertThat(tenth.isWorthReading(true, 2000)).isTrue();
    }

    @Test
    void givenADiskOfWhichNothingIsKnown_whenLookedUp_thenItIsToldOf() {
        LookupAdvice advice =
                new LookupAdvice(new PrefillTerms(PrefillCost.ofTokenRate(1e15), 10, Duration.ofMillis(1), bytes -> 0));
        assertThat(advice.isWorthReading(false, 1000)).isTrue();
    }

    @Test
    void givenChunksThatAreComputedSooner_whenAskedOften_thenOneIsToldOfToLearn() {
        LookupAdvice advice = advice();
        int told = 0;
        for (int i = 0; i < 128; i++) {
            told += advice.isWorthReading(false, 5000) ? 1 : 0;
        }
        assertThat(told).isEqualTo(2);
    }
}
