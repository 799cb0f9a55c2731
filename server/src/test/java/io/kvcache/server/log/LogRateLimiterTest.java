package io.kvcache.server.log;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.ManualClock;
import java.time.Duration;
import org.junit.jupiter.api.Test;

final class LogRateLimiterTest {

    @Test
    void givenMoreLinesThanMayBe_whenTheSpanIsOver_thenTheNextSaysHowManyWereLeftOut() {
        ManualClock time = new ManualClock();
        LogRateLimiter limit = new LogRateLimiter(time, 2, Duration.ofSeconds(10));
        assertThat(limit.tryAcquire()).isZero();
        assertThat(limit.tryAcquire()).isZero();
        for (int i = 0; i < 7; i++) {
            assertThat(limit.tryAcquire()).isEqualTo(LogRateLimiter.SUPPRESSED);
        }

        time.advance(Duration.ofSeconds(10));

        assertThat(LogRateLimiter.suppressedNote(limit.tryAcquire())).isEqualTo(" (7 more before were not logged)");
        assertThat(LogRateLimiter.suppressedNote(limit.tryAcquire())).isEmpty();
    }
}
