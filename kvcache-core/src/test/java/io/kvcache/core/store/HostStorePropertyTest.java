package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Random operations against a naive model, the whole store validated after each.
///
/// The long run: `./mvnw test -pl kvcache-core -Dtest=HostStorePropertyTest -Dkvcache.property.ops=1000000`,
/// which shares that many operations among its seeds and takes half a minute; `-Dkvcache.property.seed=N`
/// runs one seed only.
final class HostStorePropertyTest {

    private static final int STEPS = 3000;
    private static final int LONG_RUN_SEEDS = 20;
    private static final int EVENTS = 1 << 14;
    private static final List<PolicyKind> POLICIES = List.of(PolicyKind.values());

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7})
    @Tag("slow")
    void givenASeed_whenOperationsAreRandom_thenStoreAndModelAgree(long seed) {
        run(seed, STEPS, 1);
    }

    @Test
    @Tag("slow")
    @EnabledIfSystemProperty(named = "kvcache.property.ops", matches = "\\d+")
    void givenManySeeds_whenOperationsAreRandom_thenStoreAndModelAgree() {
        long operations = Long.getLong("kvcache.property.ops", 0);
        long only = Long.getLong("kvcache.property.seed", -1);
        if (only >= 0) {
            run(only, operations, 1);
            return;
        }
        for (long seed = 100; seed < 100 + LONG_RUN_SEEDS; seed++) {
            run(seed, operations / LONG_RUN_SEEDS, 1 + (int) (seed % 3));
        }
    }

    private static void run(long seed, long steps, int validateEvery) {
        long hostMib = 32 * (2 + seed * 5 % 7);
        int records = seed % 3 == 0 ? 60 : 2000;
        PolicyKind policy = POLICIES.get((int) (seed % POLICIES.size()));
        HostStoreConfig config = new HostStoreConfig(hostMib << 20, records, policy, EVENTS);
        try (HostStore store = new HostStore(config, ArenaMemory.source())) {
            RandomStoreRun run = new RandomStoreRun(new RandomStoreRun.Plan(seed, config, validateEvery), store);
            try {
                run.steps(steps);
                run.finish();
            } catch (AssertionError | RuntimeException failed) {
                throw new AssertionError("seed " + seed + ", step " + run.count() + ", " + config, failed);
            }
            System.out.println("HostStorePropertyTest " + policy + ", " + hostMib + " MiB, " + run.summary());
            assertThat(run.summary()).contains("RESERVED", "NO_PARENT");
            assertThat(hostMib == 64 || run.summary().contains("PRESENT"))
                    .as("a block is put that is there still; 64 MiB hold too few")
                    .isTrue();
        }
    }
}
