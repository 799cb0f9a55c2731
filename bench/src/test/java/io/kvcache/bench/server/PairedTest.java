package io.kvcache.bench.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import java.util.List;
import org.junit.jupiter.api.Test;

class PairedTest {

    @Test
    void givenRounds_whenAnswered_thenMediansAndTheMedianOfTheRoundsOwnRatios() {
        Paired paired = new Paired();
        paired.add(10, 20); // 0.5
        paired.add(30, 10); // 3
        paired.add(20, 25); // 0.8
        Answer answer = paired.answer(new Asked("name", "text", "GB/s"), "Redis", new Budget.RatioAtLeast(0.9));
        assertThat(answer.value()).isEqualTo(20);
        assertThat(answer.againstValue()).isEqualTo(20);
        assertThat(answer.ratio()).isEqualTo(0.8);
        assertThat(answer.runs()).isEqualTo(3);
        assertThat(answer.ok()).isFalse();
    }

    @Test
    void givenRatios_whenAveraged_thenHalfAndDoubleCancelOut() {
        assertThat(Paired.geometricMean(List.of(0.5, 2.0, 1.0))).isEqualTo(1.0, within(1e-9));
    }
}
