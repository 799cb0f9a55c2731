package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Effect of callers' labels on the importance policy.
///
/// The load: one new block in four comes back once, 500 to 3,500 uses later, and a thousand are in
/// memory. Nothing that a policy sees tells those that return from the others.
@Tag("slow")
final class BlockLabelTest {

    private static final int BLOCKS = 1000;
    private static final int USES = 200_000;
    private static final int MAX_LENGTH = 3500;

    private static final int AGENT = 3;
    private static final int BATCH = 4;

    /// Says something of a block after its use.
    private interface Labeler {
        void say(FlatCache cache, int key, boolean returns);
    }

    /// Hits among all uses, of blocks with an even number and with an odd one.
    private record Hits(double even, double odd) {
        double all() {
            return even + odd;
        }
    }

    private static Hits run(Labeler labeler) {
        return run(PolicyKind.IMPORTANCE, labeler);
    }

    private static Hits run(PolicyKind kind, Labeler labeler) {
        Random random = new Random(7);
        FlatCache cache = new FlatCache(kind, BLOCKS, BLOCKS);
        int[] due = new int[USES + MAX_LENGTH + 1];
        int[] hits = new int[2];
        for (int i = 1; i < USES; i++) {
            int key = due[i] == 0 ? i : due[i];
            boolean returns = due[i] == 0 && random.nextInt(4) == 0;
            if (returns) {
                due[i + 500 + random.nextInt(MAX_LENGTH - 500)] = key;
            }
            hits[key & 1] += cache.use(key) ? 1 : 0;
            labeler.say(cache, key, returns);
        }
        return new Hits((double) hits[0] / USES, (double) hits[1] / USES);
    }

    @Test
    void givenBlocksThatReturnAndOthers_whenTheyAreLabelled_thenFarMoreHits() {
        double lru = run(PolicyKind.LRU, (cache, key, returns) -> {}).all();
        double alone = run((cache, key, returns) -> {}).all();
        double labelled = run((cache, key, returns) -> cache.label(key, returns ? AGENT : BATCH))
                .all();
        System.out.printf("one in four returns: LRU %.4f, importance %.4f, with labels %.4f%n", lru, alone, labelled);
        assertThat(labelled).isGreaterThan(1.3 * alone);
    }

    @Test
    void givenLabelsThatMeanNothing_whenReplayed_thenFewHitsAreLost() {
        double alone = run((cache, key, returns) -> {}).all();
        Random random = new Random(11);
        double labelled = run((cache, key, returns) -> cache.label(key, random.nextInt(EvictionPolicy.REUSE_CLASSES)))
                .all();
        System.out.printf("labels at random: %.4f, without %.4f%n", labelled, alone);
        assertThat(labelled).isGreaterThan(alone - 0.005);
    }

    @Test
    void givenLabelsThatTurnToLies_whenReplayed_thenWhatTheyMeanIsLearnedAnew() {
        double lru = run(PolicyKind.LRU, (cache, key, returns) -> {}).all();
        double lies = run((cache, key, returns) -> cache.label(key, returns == key < USES / 2 ? AGENT : BATCH))
                .all();
        System.out.printf("labels change their meaning half way: %.4f, LRU %.4f%n", lies, lru);
        assertThat(lies).isGreaterThan(lru);
    }

    @Test
    void givenBlocksOfLikeReuse_whenHalfMatterLittle_thenTheOthersStay() {
        Hits alike = run((cache, key, returns) -> cache.setWeight(key, 0));
        Hits weighed = run((cache, key, returns) -> cache.setWeight(key, key % 2 == 0 ? 0 : 3));
        System.out.printf(
                "hits on what matters %.4f, on the rest %.4f; without weights %.4f, %.4f%n",
                weighed.even, weighed.odd, alike.even, alike.odd);
        assertThat(weighed.even).isGreaterThan(1.2 * alike.even);
        assertThat(weighed.odd).isPositive().isLessThan(alike.odd);
    }

    @Test
    void givenAllMatterAlikeLittle_whenReplayed_thenAsIfNothingWasSaid() {
        double alone = run((cache, key, returns) -> {}).all();
        double weighed = run((cache, key, returns) -> cache.setWeight(key, 2)).all();
        assertThat(weighed).isBetween(alone - 0.005, alone + 0.005);
    }

    @Test
    void givenAllThatCanBeSaid_whenReplayed_thenItsCostIsBounded() {
        PolicyState state = new PolicyState(BLOCKS);
        TreeStore store = new TreeStore(BLOCKS);
        ImportancePolicy importancePolicy = new ImportancePolicy(store, state);
        store.addClass(importancePolicy);
        for (int record = 0; record < BLOCKS; record++) {
            store.admit(record, RecordView.NONE, 0);
            importancePolicy.label(record, record % EvictionPolicy.REUSE_CLASSES);
            importancePolicy.setWeight(record, record / 16 % (EvictionPolicy.MAX_HALVINGS + 1));
        }
        assertThat(state.arrayBytes()).as("a byte a record").isEqualTo(17L * BLOCKS);
        assertThat(importancePolicy.heapBytes()).isLessThan(4_000_000);
        for (int i = 0; i < 100_000; i++) {
            store.use(i * 7 % BLOCKS);
        }
        for (int i = 0; i < BLOCKS; i++) {
            assertThat(store.evict(0)).isNotEqualTo(EvictionPolicy.NONE);
        }
        store.validate();
    }
}
