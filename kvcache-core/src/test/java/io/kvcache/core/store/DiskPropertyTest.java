package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.EnumMap;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// The tree of records over host memory and a disk, under random operations; validated after each.
final class DiskPropertyTest {

    private static final int SEEDS = 24;
    private static final int STEPS = 1500;

    @Test
    @Tag("slow")
    void givenSeeds_whenOperationsAreRandom_thenClosureHoldsAndBytesAreRight() {
        Map<RandomDiskRun.Count, Integer> seen = new EnumMap<>(RandomDiskRun.Count.class);
        long only = Long.getLong("kvcache.property.seed", -1);
        for (long seed = 1; seed <= SEEDS; seed++) {
            if (only < 0 || seed == only) {
                run(seed, seen);
            }
        }
        System.out.println("DiskPropertyTest " + seen);
        if (only < 0) {
            assertThat(seen).containsKeys(RandomDiskRun.Count.values());
        }
    }

    private static void run(long seed, Map<RandomDiskRun.Count, Integer> seen) {
        int step = 0;
        try (RandomDiskRun run = new RandomDiskRun(seed)) {
            for (; step < STEPS; step++) {
                run.step();
            }
            run.finish();
            run.counts().forEach((what, count) -> seen.merge(what, count, Integer::sum));
        } catch (AssertionError | RuntimeException failed) {
            throw new AssertionError(
                    "step " + step + "; again: ./mvnw test -pl kvcache-core -Dtest=DiskPropertyTest"
                            + " -Dkvcache.property.seed=" + seed,
                    failed);
        }
    }
}
