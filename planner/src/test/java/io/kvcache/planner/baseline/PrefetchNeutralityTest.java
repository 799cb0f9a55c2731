package io.kvcache.planner.baseline;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.FlatCache;
import io.kvcache.core.policy.PolicyKind;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Whether a cache that guesses finds what its twin finds that hears of the same uses alone.
/// `ImportancePrefetchTest` of core has what [io.kvcache.core.policy.ImportancePolicy] learns of guesses.
final class PrefetchNeutralityTest {

    private static final int KEYS = 300;
    /// Guesses for which there is room leave a fifth of the cache as large as it is without them.
    private static final int ROOM = 64;

    private static final int GUESSES = 4;
    private static final long[] SEEDS = {1, 7, 42};

    static List<EvictionPolicyFactory> policies() {
        return EvictionPolicies.all().stream()
                .filter(each -> !each.equals(PolicyKind.IMPORTANCE))
                .toList();
    }

    @ParameterizedTest
    @MethodSource("policies")
    void givenGuessesThatNobodyReads_whenTheyHaveLeft_thenTheSameIsFound(EvictionPolicyFactory kind) {
        for (long seed : SEEDS) {
            Twins twins = new Twins(kind, seed);
            twins.load(500);
            for (int round = 0; round < 300; round++) {
                twins.makeRoom();
                for (long guess : twins.absent()) {
                    twins.guessing.prefetchUnused(guess);
                }
                twins.load(20);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("policies")
    void givenGuessesThatAreRead_whenReadOnce_thenTheyAreAsIfTheyCameThen(EvictionPolicyFactory kind) {
        for (long seed : SEEDS) {
            Twins twins = new Twins(kind, seed);
            twins.load(500);
            for (int round = 0; round < 300; round++) {
                twins.makeRoom();
                long[] guesses = twins.absent();
                for (long guess : guesses) {
                    twins.guessing.prefetch(guess);
                }
                twins.usePresent(10);
                for (long guess : guesses) {
                    twins.plain.use(guess);
                    assertThat(twins.guessing.use(guess)).isTrue();
                }
                twins.load(20);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("policies")
    void givenGuessesThatAreHeldAndNotRead_whenTheyHaveLeft_thenThatWasNoUse(EvictionPolicyFactory kind) {
        int blocks = 12;
        FlatCache cache = new FlatCache(kind, blocks, blocks);
        for (int key = 0; key < blocks; key++) {
            cache.prefetch(key);
        }
        assertThat(cache.policy().evict(held -> false)).isEqualTo(EvictionPolicy.NONE);
        for (int key = 0; key < blocks; key++) {
            cache.drop(key);
        }
        cache.use(blocks - 1);
        for (int key = blocks; key < 2 * blocks; key++) {
            cache.use(key);
        }
        assertThat(cache.has(blocks - 1)).as("the first of equals").isFalse();
    }

    /// Two caches that see the same uses, one of which guesses.
    private static final class Twins {

        private final EvictionPolicyFactory kind;
        private final FlatCache plain;
        private final FlatCache guessing;
        private final Random random;

        Twins(EvictionPolicyFactory kind, long seed) {
            System.out.println("guessed order: " + kind.commandName() + ", seed " + seed);
            this.kind = kind;
            plain = new FlatCache(kind, ROOM, ROOM);
            guessing = new FlatCache(kind, ROOM, ROOM);
            random = new Random(seed);
        }

        void load(int uses) {
            for (int i = 0; i < uses; i++) {
                long key = draw();
                assertThat(guessing.use(key)).as("%s, key %d", kind, key).isEqualTo(plain.use(key));
            }
        }

        void usePresent(int uses) {
            for (int left = uses; left > 0; ) {
                long key = draw();
                if (plain.has(key)) {
                    assertThat(guessing.use(key) && plain.use(key)).isTrue();
                    left--;
                }
            }
        }

        /// Has both lose the same keys.
        void makeRoom() {
            for (int left = GUESSES - plain.freeRecords(); left > 0; ) {
                long key = draw();
                if (plain.has(key)) {
                    assertThat(guessing.has(key)).as("%s, key %d", kind, key).isTrue();
                    plain.drop(key);
                    guessing.drop(key);
                    left--;
                }
            }
        }

        /// Keys that are in neither, among them such as left not long ago.
        long[] absent() {
            return random.longs(0, KEYS)
                    .filter(key -> !plain.has(key))
                    .distinct()
                    .limit(GUESSES)
                    .toArray();
        }

        private long draw() {
            return (long) (KEYS * Math.pow(random.nextDouble(), 3));
        }
    }
}
