package io.kvcache.server.console;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.console.LoadTotals.LoadSample;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.SlowRequestLog;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// The history of a store whose time the test advances.
final class LoadHistoryTest {

    private final TestKeyspace test = TestKeyspace.small();
    private final MissLog misses = new MissLog(test.time(), new MissCauses(test.time()::nanos), (_, _) -> false);
    private final RequestLatencies latencies = new RequestLatencies();
    private final LoadHistory history = new LoadHistory(new ConsoleSources(
            test.cache(),
            Map.of("default", test.keyspace()),
            EmbeddedConnection.registry(NetLimits.defaults(), test.time()),
            latencies,
            new SlowRequestLog(Duration.ZERO, test.time()),
            misses,
            Map::of,
            () -> new LruHitRatioEstimator(64 << 20, 0).report(),
            test.time(),
            test.time(),
            256,
            null,
            "lru",
            "1",
            null,
            false));

    @AfterEach
    void close() {
        test.close();
    }

    private void tickAfterTenSeconds() {
        test.time().advance(Duration.ofSeconds(10));
        history.tick();
    }

    @Test
    void givenReadsBetweenTwoTicks_whenAsked_thenTheSampleOfThatTimeHasThem() {
        history.tick();
        test.put("a", new byte[100]);
        test.get("a");
        test.get("b");
        tickAfterTenSeconds();
        tickAfterTenSeconds();
        List<LoadSample> samples = history.history(null, 60).samples();
        assertThat(samples).hasSize(2);
        LoadSample first = samples.getFirst();
        assertThat(first.memoryHits()).isEqualTo(1);
        assertThat(first.misses()).isEqualTo(1);
        assertThat(first.seconds()).isEqualTo(10);
        assertThat(first.missReasons()).containsEntry(Reason.NEVER_SEEN, 1L);
        assertThat(first.missReasons().values())
                .as("one miss")
                .filteredOn(count -> count > 0)
                .hasSize(1);
        assertThat(samples.get(1).memoryHits()).isZero();
        assertThat(history.history("default", 60).samples()).as("each minute").isEmpty();
        for (int i = 0; i < 4; i++) {
            tickAfterTenSeconds();
        }
        LoadSample minute = history.history("default", 60).samples().getFirst();
        assertThat(minute.memoryHits()).isEqualTo(1);
        assertThat(minute.seconds()).isEqualTo(60);
        assertThat(history.history("nobody", 60).samples()).isEmpty();
    }

    @Test
    void givenFourHoursAndMore_whenAsked_thenTheOldestSamplesAreGone() {
        history.tick();
        for (int i = 0; i < 1500; i++) {
            tickAfterTenSeconds();
        }
        assertThat(history.history(null, 240).samples()).hasSize(1440);
        assertThat(history.history(null, 5).samples()).hasSize(30);
    }

    /// The policy's clock goes on with uses alone, and the last one stays the last however long ago it was.
    @Test
    void givenAUse_whenTimePasses_thenItsAgeGrows() {
        history.tick();
        tickAfterTenSeconds();
        test.put("a", new byte[100]);
        long clock = test.cache().policyClock();
        assertThat(history.secondsSince(clock)).isZero();
        tickAfterTenSeconds();
        assertThat(history.secondsSince(clock)).isZero();
        for (int i = 0; i < 12; i++) {
            tickAfterTenSeconds();
        }
        assertThat(history.secondsSince(clock)).isEqualTo(120);
        test.put("b", new byte[100]);
        tickAfterTenSeconds();
        assertThat(history.secondsSince(clock)).isEqualTo(130);
        assertThat(history.secondsSince(-1)).isNull();
        assertThat(history.secondsSince(0)).as("before the history began").isNull();
    }

    @Test
    void givenRequestsOfTheTransport_whenASampleIsTaken_thenTheyCountWithTheirLatencies() {
        history.tick();
        for (int i = 0; i < 7; i++) {
            latencies.recordTransport("copy", 3_000_000);
        }
        tickAfterTenSeconds();

        LoadSample sample = history.history(null, 60).samples().getFirst();
        assertThat(sample.requests()).isEqualTo(7);
        assertThat(sample.p99Micros()).isEqualTo(5000);
    }

    @Test
    void givenALookUpOfATenantThatTheSettingsDoNotName_whenItEndsEarly_thenItsReasonCounts() {
        Namespace elsewhere = Namespace.of("m", BlockShape.kv(1, 1, 8, 4, Dtype.BF16)).toBuilder()
                .tenant("unnamed")
                .build();
        history.tick();
        misses.onAccess(BlockChain.of(elsewhere, new int[] {1, 2, 3, 4}), 0, 0, 1);
        tickAfterTenSeconds();

        assertThat(history.history(null, 60).samples().getFirst().missReasons().get(Reason.NEVER_SEEN))
                .isEqualTo(1);
    }
}
