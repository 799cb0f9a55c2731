package io.kvcache.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.CacheAdmin;
import io.kvcache.core.CacheStats;
import io.kvcache.core.contract.ManualClock;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.Namespace;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

final class LastKnownStatsTest {

    private final ManualClock clock = new ManualClock();
    private final Servers servers = new Servers();
    private final LastKnownStats stats = new LastKnownStats(servers, clock);

    @Test
    void givenManyReadings_whenASecondPasses_thenTheServersAreAskedOnce() {
        for (int i = 0; i < 30; i++) {
            assertThat(stats.stats().openTables()).isEqualTo(1);
        }
        clock.sleep(Duration.ofSeconds(1).toNanos());
        for (int i = 0; i < 30; i++) {
            assertThat(stats.stats().openTables()).isEqualTo(2);
        }
    }

    @Test
    void givenServersThatDoNotAnswer_whenRead_thenTheLastValuesStayAndEachSecondAsksOnce() {
        assertThat(stats.stats().openTables()).isEqualTo(1);
        servers.answer = false;
        for (int second = 0; second < 3; second++) {
            clock.sleep(Duration.ofSeconds(1).toNanos());
            assertThat(stats.stats().openTables()).isEqualTo(1);
            assertThat(stats.stats().openTables()).isEqualTo(1);
        }
        assertThat(servers.asked).isEqualTo(4);
        servers.answer = true;
        clock.sleep(Duration.ofSeconds(1).toNanos());
        assertThat(stats.stats().openTables()).isEqualTo(5);
    }

    @Test
    void givenServersThatNeverAnswered_whenRead_thenAllIsZero() {
        servers.answer = false;
        assertThat(stats.stats().openTables()).isZero();
        assertThat(stats.stats().namespaces()).isEmpty();
        assertThat(servers.asked).isEqualTo(1);
    }

    /// Counts the requests.
    private static final class Servers implements CacheAdmin {

        private boolean answer = true;
        private int asked;

        @Override
        public CacheStats stats() {
            asked++;
            if (!answer) {
                throw new UncheckedIOException(new IOException("not connected"));
            }
            return new CacheStats(
                    new CacheStats.Memory(0, 0, 0, 0, 0),
                    new CacheStats.Records(0, 0, 0),
                    new CacheStats.Puts(0, 0, 0, 0, 0, 0, 0, 0, 0),
                    new CacheStats.Removals(0, 0, 0, 0),
                    asked,
                    0,
                    List.of());
        }

        @Override
        public long drop(Namespace namespace) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean flush(Duration timeout) {
            throw new UnsupportedOperationException();
        }

        @Override
        public EventStream events() {
            throw new UnsupportedOperationException();
        }
    }
}
