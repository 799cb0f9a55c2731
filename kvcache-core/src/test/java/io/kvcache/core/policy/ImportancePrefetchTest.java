package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// [ImportancePolicy] with prefetched blocks, beside a twin that sees the same uses.
final class ImportancePrefetchTest {

    private static final int BLOCKS = 3000;
    private static final int ROOM = 400;
    private static final int LABELS = 3;

    @Test
    void givenGuessesThatNobodyReads_whenTheyComeAndLeave_thenNothingWasLearnedOfThem() {
        Cache plain = new Cache();
        Cache guessing = new Cache();
        plain.load(20_000);
        guessing.load(20_000);
        for (int round = 0; round < 20; round++) {
            for (int block = 0; block < BLOCKS; block += 3) {
                guessing.guessAndLeave(block);
            }
            plain.touchAll();
            guessing.touchAll();
        }
        assertThat(guessing.policy.fallbackReport()).isEqualTo(plain.policy.fallbackReport());
        guessing.policy.validate();
        for (int block = 0; block < BLOCKS; block++) {
            assertThat(guessing.policy.score(block)).as("block %d", block).isEqualTo(plain.policy.score(block));
        }
    }

    @Test
    void givenAGuessThatIsRead_whenAskedThen_thenItIsAsIfItCameThen() {
        Cache demanding = new Cache();
        Cache guessing = new Cache();
        demanding.load(20_000);
        guessing.load(20_000);
        for (int block = 0; block < BLOCKS; block += 7) {
            guessing.guess(block);
        }
        demanding.touch(BLOCKS - 1, 5000);
        guessing.touch(BLOCKS - 1, 5000);
        for (int block = 0; block < BLOCKS; block += 7) {
            demanding.come(block);
            guessing.read(block);
        }
        guessing.policy.validate();
        demanding.touch(BLOCKS - 1, 5000);
        guessing.touch(BLOCKS - 1, 5000);
        for (int block = 0; block < BLOCKS; block++) {
            assertThat(guessing.policy.score(block)).as("block %d", block).isEqualTo(demanding.policy.score(block));
        }
    }

    @Test
    void givenABlockThatIsKnownToBeUsed_whenItIsBroughtIn_thenItIsExempt() {
        Cache cache = new Cache();
        cache.load(20_000);
        cache.policy.announce(cache.fingerprint(0));
        cache.leave(0);
        cache.guess(0);
        assertThat(cache.policy.score(0)).isGreaterThan(ReuseModel.MAX_DENSITY);
        assertThat(cache.policy.evict(any -> true)).isNotZero();
    }

    /// Blocks without parents, each with a record of its own.
    private static final class Cache implements FlatRecords {

        private final ImportancePolicy policy = new ImportancePolicy(this, new PolicyState(BLOCKS));
        private final BitSet resident = new BitSet();
        private final BitSet guessed = new BitSet();
        private final Random random = new Random(7);

        void load(int uses) {
            for (int i = 0; i < uses; i++) {
                int block = (int) (BLOCKS * Math.pow(random.nextDouble(), 3));
                if (resident.get(block)) {
                    policy.touch(block);
                } else {
                    if (resident.cardinality() == ROOM) {
                        resident.clear(policy.evict(any -> true));
                    }
                    resident.set(block);
                    policy.admit(block);
                    policy.label(block, block % LABELS);
                }
            }
            touch(BLOCKS - 1, 1);
        }

        /// Makes a block resident by demand if it is not, and uses it some times.
        void touch(int block, int times) {
            come(block);
            for (int i = 0; i < times; i++) {
                policy.touch(block);
            }
        }

        void touchAll() {
            resident.stream().forEach(policy::touch);
        }

        void come(int block) {
            if (!resident.get(block)) {
                resident.set(block);
                policy.admit(block);
            }
        }

        void guess(int block) {
            if (!resident.get(block)) {
                resident.set(block);
                guessed.set(block);
                policy.onPrefetched(block);
            }
        }

        void read(int block) {
            if (guessed.get(block)) {
                policy.touch(block);
            }
        }

        void guessAndLeave(int block) {
            if (!resident.get(block)) {
                guess(block);
                policy.onEvicted(block);
                resident.clear(block);
                guessed.clear(block);
            }
        }

        void leave(int block) {
            if (resident.get(block)) {
                policy.onEvicted(block);
                resident.clear(block);
            }
        }

        @Override
        public int capacity() {
            return BLOCKS;
        }

        @Override
        public long bytes(int record) {
            return 1;
        }

        @Override
        public long fingerprint(int record) {
            return (record + 1) * 0xD1B54A32D192ED03L;
        }
    }
}
