package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Whatever the device does, no wrong byte comes back; and if it does not lie, what was flushed is there.
///
/// They begin at another seed each time, which is printed. More of them: `./mvnw verify -pl kvcache-core,tiers
/// -Dtest=LogSimulationTest -Dlog.seeds=5000`; one again:
/// `-Dlog.firstSeed=1234 -Dlog.seeds=1`.
final class LogSimulationTest {

    /// From so many seeds on, each of [#RARE] must have come.
    private static final int COVERING_SEEDS = 40;

    /// The rarest of [#RARE] comes some five times in 150 seeds: so many that miss it are no bad luck.
    private static final long MAX_SEEDS = 1000;

    private static final long FIRST_SEED =
            Long.getLong("log.firstSeed", ThreadLocalRandom.current().nextLong(1, 1_000_000_000));
    private static final long SEEDS = Repetitions.of("log.seeds", 10, 400);
    private static final int STEPS = 1500;

    /// Rare events that the seeds must have seen; more of them run until they have.
    private static final String[] RARE = {
        "I/O error",
        "all buried",
        "append failed",
        "appended again",
        "bad region",
        "buried",
        "checksum error",
        "crash when FAILED",
        "crash when OPENING",
        "crash when READ_ONLY",
        "crash when REFUSED",
        "crash when SERVING",
        "crash while closing",
        "crash while freeing",
        "crash while reclaiming",
        "crash while recovering",
        "coded",
        "decoded",
        "dropped",
        "durable at the end",
        "full",
        "kept",
        "left plain",
        "lost",
        "part read",
        "recovered",
        "stale",
        "tombstones recovered"
    };

    private final DiskLogSilencer quiet = new DiskLogSilencer();

    @BeforeEach
    void silence() {
        quiet.silence();
    }

    @AfterEach
    void speak() {
        quiet.restore();
    }

    @Test
    @Tag("slow")
    void givenCrashesAndFaults_whenReadAndReopened_thenNothingIsWrongAndNothingFlushedIsLost() {
        System.out.println("log simulation of " + SEEDS + " seeds from " + FIRST_SEED + " on");
        Map<String, Integer> rare = new TreeMap<>();
        long ran = 0;
        while (ran < SEEDS
                || (SEEDS >= COVERING_SEEDS && ran < MAX_SEEDS && !rare.keySet().containsAll(Set.of(RARE)))) {
            long seed = FIRST_SEED + ran++;
            String first = run(seed, rare);
            assertThat(run(seed, new TreeMap<>()))
                    .as("seed %d, the second time", seed)
                    .isEqualTo(first);
        }
        System.out.println("log simulation of " + ran + " seeds: " + rare);
        if (SEEDS >= COVERING_SEEDS) {
            assertThat(rare).containsKeys(RARE);
        }
    }

    /// A region of which nothing was kept, and one whose kept block was replaced by an append that had to wait: both
    /// became free before the replacement was durable, and a crash then lost what had been flushed.
    @ParameterizedTest
    @ValueSource(longs = {613_658_885, 613_658_781})
    void givenABlockThatIsAppendedAnew_whenItsRegionIsReclaimed_thenACrashFindsTheOneOrTheOther(long seed) {
        assertThat(run(seed, new TreeMap<>())).isNotEmpty();
    }

    private static String run(long seed, Map<String, Integer> rare) {
        try (LogSimulation simulation = new LogSimulation(seed)) {
            String end = simulation.run(STEPS);
            simulation.rareEvents().forEach((what, count) -> rare.merge(what, count, Integer::sum));
            return end;
        } catch (RuntimeException | AssertionError failure) {
            throw new AssertionError(
                    "seed " + seed + "; again with -Dlog.firstSeed=" + seed + " -Dlog.seeds=1", failure);
        }
    }
}
