package io.kvcache.core.time;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

final class BackoffTest {

    @Test
    void givenFailures_whenAsked_thenPausesDoubleUpToTheLimitUntilASuccess() {
        Backoff backoff = new Backoff(20, 100);
        assertThat(backoff.nextNanos()).isEqualTo(20);
        assertThat(backoff.nextNanos()).isEqualTo(40);
        assertThat(backoff.currentNanos()).isEqualTo(80);
        assertThat(backoff.nextNanos()).isEqualTo(80);
        assertThat(backoff.nextNanos()).isEqualTo(100);
        assertThat(backoff.nextNanos()).isEqualTo(100);
        backoff.reset();
        assertThat(backoff.currentNanos()).isEqualTo(20);
    }

    @Test
    void givenALimitNearTheEndOfTheRange_whenIncreased_thenItDoesNotOverflow() {
        Backoff backoff = new Backoff(Long.MAX_VALUE - 1, Long.MAX_VALUE);
        backoff.increase();
        assertThat(backoff.currentNanos()).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void givenWrongPauses_whenMade_thenTheErrorNamesThem() {
        assertThatThrownBy(() -> new Backoff(0, 10)).hasMessageContaining("0 to 10");
        assertThatThrownBy(() -> new Backoff(10, 9)).hasMessageContaining("10 to 9");
    }
}
