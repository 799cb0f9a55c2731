package io.kvcache.tiers.movement;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class WriteBudgetTest {

    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
    private static final long DAY = TimeUnit.DAYS.toNanos(1);
    private static final long START = -5 * SECOND; // clocks may begin anywhere

    /// Writes as often as may be, in steps of a millisecond.
    ///
    /// @return bytes written
    private static long written(WriteBudget budget, long fromNanos, long nanos, long bytesEach) {
        long bytes = 0;
        for (long now = fromNanos; now - fromNanos < nanos; now += TimeUnit.MILLISECONDS.toNanos(1)) {
            while (budget.canWrite(now)) {
                budget.spend(bytesEach);
                bytes += bytesEach;
            }
        }
        return bytes;
    }

    @Test
    void givenALimitASecond_whenWrittenAllTheTime_thenASecondsWorthAtOnceAndSoMuchASecond() {
        WriteBudget budget = new WriteBudget(1_000_000, WriteBudget.UNLIMITED);
        assertThat(written(budget, START, 10 * SECOND, 1000)).isBetween(10_900_000L, 11_002_000L);
        assertThat(budget.dailyFractionSpent()).isZero();
    }

    @Test
    void givenAPause_whenOver_thenNoMoreThanASecondsWorthHasGathered() {
        WriteBudget budget = new WriteBudget(1_000_000, WriteBudget.UNLIMITED);
        written(budget, START, SECOND, 1000);
        long later = START + 3600 * SECOND;
        assertThat(written(budget, later, 1, 1000)).isEqualTo(1_000_000);
    }

    @Test
    void givenAWriteOfManySecondsWorth_whenAllowed_thenTheNextWaitsUntilItIsPaid() {
        WriteBudget budget = new WriteBudget(1_000_000, WriteBudget.UNLIMITED);
        assertThat(budget.canWrite(START)).isTrue();
        budget.spend(5_000_000);
        assertThat(budget.canWrite(START + 4 * SECOND)).isFalse();
        assertThat(budget.canWrite(START + 4 * SECOND + SECOND / 100)).isTrue();
    }

    @Test
    void givenALimitADay_whenSpent_thenTheDayAllowsNoMoreThoughTheSecondWould() {
        WriteBudget budget = new WriteBudget(WriteBudget.UNLIMITED, 86_400_000);
        assertThat(written(budget, START, SECOND, 100_000)).isEqualTo(86_500_000); // the last overdraws it
        assertThat(budget.dailyFractionSpent()).isBetween(1.0, 1.01);
        assertThat(budget.canWrite(START + 50 * SECOND)).isFalse(); // a thousand bytes a second come back
        assertThat(budget.canWrite(START + 200 * SECOND)).isTrue();
        assertThat(budget.canWrite(START + 3 * DAY)).isTrue();
        assertThat(budget.dailyFractionSpent()).isZero();
    }

    @Test
    void givenNoLimit_whenAsked_thenAlways() {
        WriteBudget budget = new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED);
        budget.spend(Long.MAX_VALUE);
        assertThat(budget.canWrite(START)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -1, Long.MIN_VALUE})
    void givenALimitBelowOne_whenMade_thenTheErrorNamesTheRange(long bytes) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new WriteBudget(1, bytes))
                .withMessageContaining(bytes + " bytes; it takes 1 and up");
    }
}
