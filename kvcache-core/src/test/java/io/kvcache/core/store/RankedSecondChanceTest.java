package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.store.DiskUsage.RankedSecondChance;
import org.junit.jupiter.api.Test;

/// Blocks spared from eviction by last use.
final class RankedSecondChanceTest {

    private final RankedSecondChance chance = new RankedSecondChance();

    private void pass(int candidates) {
        for (int i = 0; i < candidates; i++) {
            assertThat(chance.isExempt(1)).isFalse();
        }
    }

    @Test
    void givenCandidatesOfOneRank_whenOneIsAQuarterAbove_thenItAloneIsSpared() {
        pass(100);
        assertThat(chance.isExempt(1.2)).isFalse();
        assertThat(chance.isExempt(1.3)).isTrue();
        pass(10);
    }

    @Test
    void givenOneThatIsBeingRead_whenItWasACandidate_thenWhatIsWantedMoreIsSparedAsBefore() {
        pass(100);
        assertThat(chance.isExempt(Double.POSITIVE_INFINITY)).isTrue();
        assertThat(chance.isExempt(2)).isTrue();
        assertThat(chance.isExempt(1)).isFalse();
    }

    @Test
    void givenNothingElseButWhatIsWanted_whenSparedSixteenTimes_thenOneGoes() {
        pass(100);
        for (int i = 0; i < 16; i++) {
            assertThat(chance.isExempt(1_000_000)).isTrue();
        }
        assertThat(chance.isExempt(1_000_000)).isFalse();
    }
}
