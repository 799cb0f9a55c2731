package io.kvcache.transport.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/// How long those sleep that wait, without sleeping.
final class PauseTest {

    private static final long LONGEST = TimeUnit.MILLISECONDS.toNanos(10);

    /// Until it sleeps for as long as it ever does.
    private static int shorterSleeps(Pause pause) {
        int sleeps = 0;
        while (pause.nextNanos() < LONGEST) {
            sleeps++;
            assertThat(sleeps).isLessThan(10_000);
        }
        return sleeps;
    }

    @Test
    void givenAConnection_whenItHearsSomething_thenItsSleepsAreShortForAsLongAsAtFirst() {
        Pause pause = Pause.ofConnection(false);
        int first = shorterSleeps(pause);
        assertThat(shorterSleeps(pause)).isZero();
        pause.reset();
        assertThat(shorterSleeps(pause)).isEqualTo(first).isPositive();
    }

    @Test
    void givenADriver_whenItHearsSomethingNowAndThen_thenItSoonSleepsLong() {
        Pause pause = Pause.ofDriver(false);
        int first = shorterSleeps(pause);
        pause.reset();
        int afterOne = shorterSleeps(pause);
        assertThat(afterOne).isPositive().isLessThan(first / 5);
        for (int i = 0; i < 100; i++) {
            pause.reset();
        }
        assertThat(shorterSleeps(pause)).as("after much").isEqualTo(first);
    }

    @Test
    void givenProcessorsToSpare_whenNothingHappens_thenItNeverSleepsLong() {
        Pause pause = Pause.ofDriver(true);
        for (int i = 0; i < 1000; i++) {
            assertThat(pause.nextNanos()).isLessThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(1));
        }
    }
}
