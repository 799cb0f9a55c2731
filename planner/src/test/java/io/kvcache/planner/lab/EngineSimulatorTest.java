package io.kvcache.planner.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.planner.lab.EngineSimulator.CachedTokens;
import io.kvcache.planner.lab.EngineSimulator.Prompt;
import org.junit.jupiter.api.Test;

final class EngineSimulatorTest {

    private static final CachedTokens NOTHING = new CachedTokens(0, 0, 0);

    /// 1,000 tokens a second; a token is 1,000 bytes, of which a second moves 10 MB from memory and 1 MB
    /// from disk.
    private final EngineSimulator engine = new EngineSimulator(
            new EngineHardware(PrefillCost.ofTokenRate(1000), 1000, 10e6, 1e6, 0.5, EngineHardware.RequestTimes.NONE));

    private EngineSimulator.Summary summary() {
        return engine.summary();
    }

    @Test
    void givenAPromptOfWhichNothingIsFound_whenServed_thenAllIsComputed() {
        engine.serve(new Prompt(5, 2000, 100), NOTHING);
        assertThat(summary().p50Seconds()).isCloseTo(2, within(1e-9));
        assertThat(summary().computeSeconds()).isCloseTo(2, within(1e-9));
        assertThat(summary().prefillSecondsSaved()).isZero();
        assertThat(summary().loadSeconds()).isZero();
    }

    @Test
    void givenTokensInBothTiers_whenServed_thenTheyAreMovedAndTheRestIsComputed() {
        engine.serve(new Prompt(0, 3000, 100), new CachedTokens(0, 1000, 1000));
        // disk 0.5 + 1, copy of both 0.2, the last thousand 1
        assertThat(summary().p99Seconds()).isCloseTo(2.7, within(1e-9));
        assertThat(summary().loadSeconds()).isCloseTo(1.7, within(1e-9));
        assertThat(summary().prefillSecondsSaved()).isCloseTo(2, within(1e-9));
    }

    @Test
    void givenTokensWhereTheEngineReadsThem_whenServed_thenTheyAreNotMoved() {
        engine.serve(new Prompt(0, 3000, 100), new CachedTokens(1000, 1000, 0));
        assertThat(summary().p99Seconds()).isCloseTo(1.1, within(1e-9));
        assertThat(summary().prefillSecondsSaved()).isCloseTo(2, within(1e-9));
        assertThat(summary().hostBytesRead()).isEqualTo(1_000_000);
    }

    @Test
    void givenAQueue_whenItsNextIsOnDisk_thenReadingGoesOnWhileTheEngineWorks() {
        engine.serve(new Prompt(0, 4000, 100), NOTHING);
        engine.serve(new Prompt(1, 2000, 100), new CachedTokens(0, 0, 1000));
        // here at 2.5, the engine is free at 4, then 0.1 and 1
        assertThat(summary().p99Seconds()).isCloseTo(4.1, within(1e-9));
        assertThat(summary().p50Seconds()).isCloseTo(4, within(1e-9));
    }

    @Test
    void givenMoreThanTheEngineCanDo_whenRequestsGoOnComing_thenTheyWaitLongerAndLonger() {
        for (int second = 0; second < 100; second++) {
            engine.serve(new Prompt(second, 2000, 100), NOTHING);
        }
        assertThat(summary().p50Seconds()).isCloseTo(51, within(1e-9));
        assertThat(summary().p99Seconds()).isCloseTo(100, within(1e-9));
    }

    @Test
    void givenTimesOfRequestsAndAnswers_whenServed_thenTheNextWaitsForTheAnswer() {
        EngineSimulator serial = new EngineSimulator(new EngineHardware(
                PrefillCost.ofTokenRate(1000), 1000, 10e6, 1e6, 0.5, new EngineHardware.RequestTimes(0.5, 0.1)));
        serial.serve(new Prompt(0, 1000, 11), NOTHING);
        serial.serve(new Prompt(1, 1000, 0), NOTHING);
        // first token at 1.5, the other ten until 2.5; then 1.5 again, from 1 on
        assertThat(serial.summary().p50Seconds()).isCloseTo(1.5, within(1e-9));
        assertThat(serial.summary().p99Seconds()).isCloseTo(3, within(1e-9));
        assertThat(serial.summary().busySeconds()).isCloseTo(4, within(1e-9));
    }
}
