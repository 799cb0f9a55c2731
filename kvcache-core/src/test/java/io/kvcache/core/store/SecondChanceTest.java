package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// What is spared where least recently used blocks go.
final class SecondChanceTest {

    private final SecondChance chance = new SecondChance();

    private void pass(int candidates) {
        for (int i = 0; i < candidates; i++) {
            assertThat(chance.spares(1)).isFalse();
        }
    }

    @Test
    void givenCandidatesOfOneRank_whenOneIsAQuarterAbove_thenItAloneIsSpared() {
        pass(100);
        assertThat(chance.spares(1.2)).isFalse();
        assertThat(chance.spares(1.3)).isTrue();
        pass(10);
    }

    @Test
    void givenOneThatIsBeingRead_whenItWasACandidate_thenWhatIsWantedMoreIsSparedAsBefore() {
        pass(100);
        assertThat(chance.spares(Double.POSITIVE_INFINITY)).isTrue();
        assertThat(chance.spares(2)).isTrue();
        assertThat(chance.spares(1)).isFalse();
    }

    @Test
    void givenNothingElseButWhatIsWanted_whenSparedSixteenTimes_thenOneGoes() {
        pass(100);
        for (int i = 0; i < 16; i++) {
            assertThat(chance.spares(1_000_000)).isTrue();
        }
        assertThat(chance.spares(1_000_000)).isFalse();
    }
}
