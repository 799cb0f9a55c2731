package io.kvcache.transport.net;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class FailurePauseTest {

    private static final long MILLIS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long START = -5_000 * MILLIS; // a clock may count from anywhere

    private final FailurePause pause = new FailurePause(10_000 * MILLIS);

    private long fail(long startNanos, long signsBefore, long nowNanos, long signs) {
        return pause.onFailure(new FailurePause.Call(startNanos, signsBefore), nowNanos, signs);
    }

    @Test
    void givenASilentServer_whenACallWaitedInVain_thenItIsAvoidedForFourTimesAsLong() {
        long now = START + 1_000 * MILLIS;
        assertThat(fail(START, 7, now, 7)).isEqualTo(4_000 * MILLIS);
        assertThat(pause.isActive(now + 3_999 * MILLIS, 7)).isTrue();
        assertThat(pause.isActive(now + 4_000 * MILLIS, 7)).isFalse();
        assertThat(fail(now, 7, now + 60_000 * MILLIS, 7)).as("at most").isEqualTo(10_000 * MILLIS);
    }

    @Test
    void givenASilentServer_whenItIsHeardAgain_thenOnlyTheShortPauseIsLeft() {
        long now = START + 1_000 * MILLIS;
        fail(START, 7, now, 7);
        assertThat(pause.isActive(now + 99 * MILLIS, 8)).isTrue();
        assertThat(pause.isActive(now + 100 * MILLIS, 8)).isFalse();
        assertThat(pause.isActive(now + 101 * MILLIS, 7)).as("for good").isFalse();
    }

    @Test
    void givenAServerThatAnswersOthers_whenACallIsTooSlow_thenItIsAvoidedForAShortTime() {
        long now = START + 1_000 * MILLIS;
        assertThat(fail(START, 7, now, 9)).isEqualTo(100 * MILLIS);
        assertThat(pause.isActive(now + 99 * MILLIS, 9)).isTrue();
        assertThat(pause.isActive(now + 100 * MILLIS, 9)).isFalse();
    }

    @Test
    void givenAServerThatAnswersOthersOnly_whenEachCallFails_thenPausesGrowUntilOneSucceeds() {
        long now = START;
        for (int times : new int[] {1, 2, 4, 8, 16, 32, 64, 100, 100}) {
            now += 20_000 * MILLIS;
            assertThat(fail(now - 1_000 * MILLIS, 0, now, 1)).isEqualTo(times * 100 * MILLIS);
        }
        pause.onSuccess();
        assertThat(pause.isActive(now, 1)).isFalse();
        assertThat(fail(now, 1, now, 1)).isEqualTo(100 * MILLIS);
    }

    @Test
    void givenAPause_whenAnotherCallFails_thenItIsToldOnce() {
        assertThat(fail(START, 0, START, 0)).isPositive();
        assertThat(fail(START, 0, START + 50 * MILLIS, 0)).isZero();
        assertThat(pause.isActive(START + 249 * MILLIS, 0))
                .as("200 ms from the second")
                .isTrue();
        assertThat(pause.isActive(START + 250 * MILLIS, 0)).isFalse();
    }
}
