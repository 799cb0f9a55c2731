package io.kvcache.planner.baseline;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.FlatCache;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.policy.TreeStore;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// What sets each policy apart, on cases small enough to follow by hand. Records are roots unless a test says
/// otherwise.
final class BaselinePoliciesTest {

    @Test
    void givenFifo_whenTheFirstIsUsed_thenItStillGoesFirst() {
        TreeStore store = filled(PolicyParameter.parse("FIFO"), 4);
        store.use(0);
        assertThat(drain(store)).containsExactly(0, 1, 2, 3);
    }

    @Test
    void givenLru_whenTheFirstIsUsed_thenItGoesLast() {
        TreeStore store = filled(PolicyKind.LRU, 4);
        store.use(0);
        assertThat(drain(store)).containsExactly(1, 2, 3, 0);
    }

    @Test
    void givenLfu_whenUsesDiffer_thenTheLeastUsedGoesFirst() {
        TreeStore store = filled(PolicyParameter.parse("LFU_DA"), 3);
        store.use(0);
        store.use(0);
        store.use(1);
        assertThat(drain(store)).containsExactly(2, 1, 0);
    }

    @Test
    void givenLfu_whenGuessesAreNotRead_thenTheyCountForNothing() {
        for (EvictionPolicyFactory kind : List.of(PolicyParameter.parse("LFU_DA"), PolicyParameter.parse("GDSF"))) {
            FlatCache cache = new FlatCache(kind, 4, 2);
            for (int i = 0; i < 5; i++) {
                cache.prefetchUnused(9);
            }
            cache.use(8);
            cache.use(8);
            cache.use(9);
            cache.use(7);
            assertThat(cache.has(8)).as("%s: two uses", kind).isTrue();
            assertThat(cache.has(9)).as("%s: one use, and five guesses", kind).isFalse();
        }
    }

    @Test
    void givenLfu_whenVictimsHadManyUses_thenNewcomersStartAbove() {
        TreeStore store = filled(PolicyParameter.parse("LFU_DA"), 3);
        for (int i = 0; i < 9; i++) {
            store.use(0);
            store.use(1);
        }
        assertThat(store.evict(0)).isEqualTo(2);
        assertThat(store.evict(0)).isEqualTo(0);
        store.admit(2, RecordView.NONE, 0);
        assertThat(store.evict(0))
                .as("the age is 10 now, so the newcomer has 11 and record 1 has 10")
                .isEqualTo(1);
    }

    @Test
    void givenGdsf_whenUsesAreEqual_thenTheCheapestToComputeGoesFirst() {
        TreeStore store = new TreeStore(200);
        store.addClass(PolicyParameter.parse("GDSF").create(store));
        for (int record = 0; record < 100; record++) {
            store.admit(record, record - 1, 0);
        }
        store.admit(100, RecordView.NONE, 0);
        store.use(100);
        assertThat(store.evict(0))
                .as("once used at depth 99 is worth 2.66, twice used at depth 0 is worth 2.02")
                .isEqualTo(100);
    }

    @Test
    void givenGdsf_whenTheFirstToComeIsAGuess_thenSizesAreRelativeToIt() {
        TreeStore store = new TreeStore(2);
        store.addClass(PolicyParameter.parse("GDSF").create(store));
        store.prefetch(1, RecordView.NONE, 0);
        store.admit(0, RecordView.NONE, 0);
        assertThat(drain(store)).as("of equals").containsExactly(0, 1);
    }

    @Test
    void givenSlru_whenScanned_thenTheReusedRecordSurvives() {
        TreeStore store = filled(PolicyParameter.parse("SLRU"), 10);
        store.use(0);
        for (int record = 1; record < 10; record++) {
            assertThat(store.evict(0)).isEqualTo(record);
            store.admit(record, RecordView.NONE, 0);
        }
        assertThat(store.isResident(0)).isTrue();
    }

    @Test
    void givenSlru_whenAGuessIsReadOnce_thenItIsOnProbation() {
        TreeStore store = guessed(PolicyParameter.parse("SLRU"), 10);
        store.use(0);
        scan(store, 1, 10);
        assertThat(store.evict(0)).as("one use").isEqualTo(0);
    }

    @Test
    void givenSlru_whenAGuessIsReadAgain_thenItIsProtected() {
        TreeStore store = guessed(PolicyParameter.parse("SLRU"), 10);
        store.use(0);
        store.use(0);
        scan(store, 1, 10);
        scan(store, 1, 10);
        assertThat(store.isResident(0)).isTrue();
    }

    @Test
    void givenSieve_whenAGuessIsReadOnce_thenTheHandTakesIt() {
        TreeStore store = guessed(PolicyParameter.parse("SIEVE"), 4);
        store.use(0);
        scan(store, 1, 4);
        assertThat(store.evict(0))
                .as("it came with its first use, after the others")
                .isEqualTo(0);
    }

    @Test
    void givenSieve_whenAGuessIsReadAgain_thenTheHandSparesIt() {
        TreeStore store = guessed(PolicyParameter.parse("SIEVE"), 4);
        store.use(0);
        store.use(0);
        scan(store, 1, 4);
        assertThat(store.evict(0)).isEqualTo(1);
    }

    @Test
    void givenSieve_whenAGuessIsDemotedAndReadOnce_thenThatIsItsFirstUse() {
        TreeStore store = guessed(PolicyParameter.parse("SIEVE"), 4);
        store.demote(0);
        store.use(0);
        scan(store, 1, 4);
        assertThat(store.evict(0)).isEqualTo(0);
    }

    @Test
    void givenSieve_whenTheHandPasses_thenUsedRecordsStayAndTheFirstUnusedGoes() {
        TreeStore store = filled(PolicyParameter.parse("SIEVE"), 4);
        store.use(0);
        store.use(2);
        assertThat(store.evict(0)).isEqualTo(1);
        assertThat(store.evict(0)).isEqualTo(3);
        assertThat(store.evict(0)).as("the bit of 0 was cleared in passing").isEqualTo(0);
    }

    @Test
    void givenS3Fifo_whenScanned_thenRecordsUsedTwiceSurviveInMain() {
        TreeStore store = filled(PolicyParameter.parse("S3_FIFO"), 20);
        store.use(0);
        store.use(0);
        for (int record = 1; record < 20; record++) {
            assertThat(store.evict(0)).isEqualTo(record);
            store.admit(record, RecordView.NONE, 0);
        }
        assertThat(store.isResident(0)).isTrue();
    }

    @Test
    void givenS3Fifo_whenAGuessIsReadTwice_thenThatIsOneUseAgain() {
        TreeStore store = guessed(PolicyParameter.parse("S3_FIFO"), 20);
        store.use(0);
        store.use(0);
        scan(store, 1, 20);
        assertThat(store.evict(0)).as("not used more than once since its first").isEqualTo(0);
    }

    @Test
    void givenS3Fifo_whenAGuessIsDemotedAndReadTwice_thenThatIsOneUseAgain() {
        TreeStore store = guessed(PolicyParameter.parse("S3_FIFO"), 20);
        store.demote(0);
        store.use(0);
        store.use(0);
        scan(store, 1, 20);
        assertThat(store.evict(0)).isEqualTo(0);
    }

    @Test
    void givenS3Fifo_whenAGuessIsPinnedAtItsTurn_thenItStaysAGuess() {
        TreeStore store = guessed(PolicyParameter.parse("S3_FIFO"), 20);
        store.pin(0, true);
        scan(store, 1, 2);
        store.pin(0, false);
        store.use(0);
        store.use(0);
        scan(store, 2, 20);
        assertThat(List.of(store.evict(0), store.evict(0))).containsExactly(1, 0);
    }

    @Test
    void givenS3Fifo_whenAGuessIsReadThreeTimes_thenItSurvivesInMain() {
        TreeStore store = guessed(PolicyParameter.parse("S3_FIFO"), 20);
        for (int i = 0; i < 3; i++) {
            store.use(0);
        }
        scan(store, 1, 20);
        scan(store, 1, 20);
        assertThat(store.isResident(0)).isTrue();
    }

    @Test
    void givenTheClassPath_whenListed_thenShippedOnesAreFirstAndLast() {
        assertThat(EvictionPolicies.names()).isEqualTo("lru, fifo, lfu-da, gdsf, slru, s3-fifo, sieve, importance");
        for (EvictionPolicyFactory kind : EvictionPolicies.all()) {
            assertThat(EvictionPolicies.find(kind.commandName())).contains(kind);
            assertThat(PolicyParameter.parse(PolicyParameter.format(kind))).isEqualTo(kind);
            assertThat(kind.source()).isNotBlank();
        }
        assertThat(EvictionPolicies.find("random")).isEmpty();
    }

    /// The records `[from, to)` leave in this order, each for one that is new.
    private static void scan(TreeStore store, int from, int to) {
        for (int record = from; record < to; record++) {
            assertThat(store.evict(0)).isEqualTo(record);
            store.admit(record, RecordView.NONE, 0);
        }
    }

    private static TreeStore filled(EvictionPolicyFactory kind, int records) {
        TreeStore store = new TreeStore(records);
        store.addClass(kind.create(store));
        for (int record = 0; record < records; record++) {
            store.admit(record, RecordView.NONE, 0);
        }
        return store;
    }

    /// The first is a guess.
    private static TreeStore guessed(EvictionPolicyFactory kind, int records) {
        TreeStore store = new TreeStore(records);
        store.addClass(kind.create(store));
        store.prefetch(0, RecordView.NONE, 0);
        for (int record = 1; record < records; record++) {
            store.admit(record, RecordView.NONE, 0);
        }
        return store;
    }

    private static List<Integer> drain(TreeStore store) {
        List<Integer> victims = new ArrayList<>();
        for (int victim = store.evict(0); victim != EvictionPolicy.NONE; victim = store.evict(0)) {
            victims.add(victim);
        }
        return victims;
    }
}
