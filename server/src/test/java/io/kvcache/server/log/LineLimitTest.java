package io.kvcache.server.log;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.ManualClock;
import java.time.Duration;
import org.junit.jupiter.api.Test;

final class LineLimitTest {

    @Test
    void givenMoreLinesThanMayBe_whenTheSpanIsOver_thenTheNextSaysHowManyWereLeftOut() {
        ManualClock time = new ManualClock();
        LineLimit limit = new LineLimit(time, 2, Duration.ofSeconds(10));
        assertThat(limit.take()).isZero();
        assertThat(limit.take()).isZero();
        for (int i = 0; i < 7; i++) {
            assertThat(limit.take()).isEqualTo(LineLimit.TOO_MANY);
        }

        time.advance(Duration.ofSeconds(10));

        assertThat(LineLimit.unsaid(limit.take())).isEqualTo(" (7 more before were not logged)");
        assertThat(LineLimit.unsaid(limit.take())).isEmpty();
    }
}
