package io.kvcache.server.console;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.server.console.LoadTotals.LoadSample;
import io.kvcache.server.http.Viewer;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.SlowRequestLog;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What other sizes of memory would find, beside what the overview shows.
final class WhatIfTest {

    private final TestKeyspace test = TestKeyspace.small();
    private final LruHitRatioEstimator curve = LruHitRatioEstimator.of(test.cache());
    private final ConsoleSources sources = new ConsoleSources(
            test.cache(),
            Map.of("default", test.keyspace()),
            EmbeddedConnection.registry(NetLimits.defaults(), test.time()),
            new RequestLatencies(),
            new SlowRequestLog(Duration.ZERO, test.time()),
            new MissLog(test.time(), new MissCauses(test.time()::nanos), (_, _) -> false),
            Map::of,
            curve::report,
            test.time(),
            test.time(),
            256,
            null,
            "lru",
            "1",
            null,
            false);
    private final LoadHistory history = new LoadHistory(sources);
    private final ConsoleEndpoint endpoint = new ConsoleEndpoint(
            new ConsoleEndpoint.ConsoleParts(sources, history, new LiveFeed(sources), List::of),
            Viewer.Rules.OF_OPERATORS);

    @AfterEach
    void close() {
        test.close();
    }

    /// Reads values of which not all fit, puts those that are missing, and asks for some that are never put.
    @Test
    void givenALoad_whenAsked_thenTodaysRatioIsTheOneOfTheOverviewAndMoreMemoryFindsMore() {
        history.tick();
        Random random = new Random(5);
        for (int i = 0; i < 3000; i++) {
            String key = "k" + (int) (random.nextDouble() * random.nextDouble() * 400);
            if (test.get(key) == null) {
                test.put(key, new byte[400 << 10]);
            }
            test.get("never" + i);
        }
        test.time().advance(Duration.ofSeconds(10));
        history.tick();
        LoadSample sample = history.history(null, 60).samples().getFirst();
        double shown = (double) (sample.memoryHits() + sample.diskHits())
                / (sample.memoryHits() + sample.diskHits() + sample.misses());

        ConsoleEndpoint.WhatIfJson whatIf = endpoint.whatIf(60);
        assertThat(whatIf.lookups()).isEqualTo(sample.memoryHits() + sample.misses());
        List<Double> ratios =
                whatIf.sizes().stream().map(ConsoleEndpoint.SizeJson::hitRatio).toList();
        assertThat(whatIf.sizes().get(3).factor()).isEqualTo(1);
        assertThat(ratios.get(3)).isEqualTo(shown).isBetween(0.2, 0.5);
        assertThat(ratios).isSorted();
        assertThat(ratios.getFirst()).isLessThan(shown - 0.05);
        assertThat(ratios.getLast()).isGreaterThan(shown + 0.05);
    }

    @Test
    void givenNoLookups_whenAsked_thenNoRatio() {
        assertThat(endpoint.whatIf(60).sizes()).isEmpty();
        assertThat(endpoint.whatIf(60).lookups()).isZero();
    }

    @Test
    void givenEstimates_whenScaled_thenTheRatioStaysOneAndFollowsThem() {
        assertThat(ConsoleEndpoint.scaled(0.945, 0.4, 0.4)).isEqualTo(0.945);
        assertThat(ConsoleEndpoint.scaled(0.5, 0.5, 0.75)).isCloseTo(0.75, within(1e-9));
        for (double measured = 0; measured <= 1; measured += 0.25) {
            double before = 0;
            for (double other = 0; other <= 1; other += 0.125) {
                double ratio = ConsoleEndpoint.scaled(measured, 0.375, other);
                assertThat(ratio).isBetween(before - 1e-5, 1.0);
                before = ratio;
            }
        }
        assertThat(ConsoleEndpoint.scaled(1, 1, 0.5)).as("all was found").isCloseTo(0.5, within(1e-5));
        assertThat(ConsoleEndpoint.scaled(0, 0, 0.5)).as("nothing was found").isCloseTo(0.5, within(1e-5));
    }
}
