package io.kvcache.transport.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/// How long those sleep that wait, without sleeping.
final class AdaptiveIdleStrategyTest {

    private static final long MAX_SLEEP_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /// Until it sleeps for as long as it ever does.
    private static int shorterSleeps(AdaptiveIdleStrategy adaptiveIdleStrategy) {
        int sleeps = 0;
        while (adaptiveIdleStrategy.nextSleepNanos() < MAX_SLEEP_NANOS) {
            sleeps++;
            assertThat(sleeps).isLessThan(10_000);
        }
        return sleeps;
    }

    @Test
    void givenAConnection_whenItHearsSomething_thenItsSleepsAreShortForAsLongAsAtFirst() {
        AdaptiveIdleStrategy adaptiveIdleStrategy = AdaptiveIdleStrategy.forConnection(false);
        int first = shorterSleeps(adaptiveIdleStrategy);
        assertThat(shorterSleeps(adaptiveIdleStrategy)).isZero();
        adaptiveIdleStrategy.reset();
        assertThat(shorterSleeps(adaptiveIdleStrategy)).isEqualTo(first).isPositive();
    }

    @Test
    void givenADriver_whenItHearsSomethingNowAndThen_thenItSoonSleepsLong() {
        AdaptiveIdleStrategy adaptiveIdleStrategy = AdaptiveIdleStrategy.forDriver(false);
        int first = shorterSleeps(adaptiveIdleStrategy);
        adaptiveIdleStrategy.reset();
        int afterOne = shorterSleeps(adaptiveIdleStrategy);
        assertThat(afterOne).isPositive().isLessThan(first / 5);
        for (int i = 0; i < 100; i++) {
            adaptiveIdleStrategy.reset();
        }
        assertThat(shorterSleeps(adaptiveIdleStrategy)).as("after much").isEqualTo(first);
    }

    @Test
    void givenProcessorsToSpare_whenNothingHappens_thenItNeverSleepsLong() {
        AdaptiveIdleStrategy adaptiveIdleStrategy = AdaptiveIdleStrategy.forDriver(true);
        for (int i = 0; i < 1000; i++) {
            assertThat(adaptiveIdleStrategy.nextSleepNanos()).isLessThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(1));
        }
    }
}
