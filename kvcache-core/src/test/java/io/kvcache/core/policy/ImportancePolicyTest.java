package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.policy.ReuseTracker.BucketScores;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Learning of the importance policy, on loads whose best order is plain.
@Tag("slow")
final class ImportancePolicyTest {

    private static final int BLOCKS = 1000;

    @Test
    void givenNothingLearned_whenEvicting_thenRoughlyTheOldestFirst() {
        TreeStore store = new TreeStore(200);
        store.addClass(PolicyKind.IMPORTANCE.create(store));
        for (int record = 0; record < 200; record++) {
            store.admit(record, RecordView.NONE, 0);
        }
        for (int i = 0; i < 100; i++) {
            assertThat(store.evict(0)).as("victim %d", i).isLessThan(200 - 64);
        }
    }

    /// Half of the blocks are used once and never again, half come back after every 3,000 uses, which
    /// is longer than LRU can keep anything.
    @Test
    void givenOneOffBlocksAmongReturningOnes_whenReplayed_thenFarMoreHitsThanLru() {
        double lru = ratio(PolicyKind.LRU);
        double importance = ratio(PolicyKind.IMPORTANCE);
        System.out.printf("returning among one-off blocks: LRU %.3f, importance %.3f%n", lru, importance);
        assertThat(lru).isLessThan(0.05);
        assertThat(importance)
                .as("a third of the returning half fits in memory")
                .isGreaterThan(0.15);
    }

    private static double ratio(PolicyKind kind) {
        FlatCache cache = new FlatCache(kind, 20_000, BLOCKS);
        int oneOff = 1_000_000;
        int hits = 0;
        int uses = 200_000;
        for (int i = 0; i < uses; i++) {
            hits += cache.use(i % 2 == 0 ? i / 2 % 1500 : oneOff++) ? 1 : 0;
        }
        return (double) hits / uses;
    }

    @Test
    void givenLoadThatTurnsAround_whenReplayed_thenWhatWasLearnedIsForgotten() {
        FlatCache cache = new FlatCache(PolicyKind.IMPORTANCE, 20_000, BLOCKS);
        Random random = new Random(5);
        int fresh = 1_000_000;
        for (int i = 0; i < 3 * AnnouncedRequests.horizon(0); i++) {
            cache.use(i % 2 == 0 ? i / 2 % 1500 : fresh++);
        }
        int hits = 0;
        for (int i = 0; i < 200_000; i++) {
            int key = 5_000_000 + i / 20 * 10 + random.nextInt(800);
            hits += cache.use(key) && i > 50_000 ? 1 : 0;
        }
        assertThat(hits / 150_000.0).as("recency alone gets nearly all of this").isGreaterThan(0.4);
    }

    @Test
    void givenBlocksThatASlowerTierHasToo_whenRoomIsNeeded_thenTheyGoFirstAsLongAsItHasThem() {
        FlatCache cache = new FlatCache(PolicyKind.IMPORTANCE, 20_000, BLOCKS);
        for (int key = 0; key < BLOCKS; key++) {
            cache.use(key);
        }
        for (int key = 0; key < BLOCKS; key += 2) {
            cache.setCopy(key, true);
        }
        for (int fresh = 0; fresh < BLOCKS / 8; fresh++) {
            cache.use(1_000_000 + fresh);
        }
        assertThat(here(cache, 1)).as("those without a copy").isEqualTo(BLOCKS / 2);
        assertThat(here(cache, 0)).isEqualTo(BLOCKS / 2 - BLOCKS / 8);

        for (int key = 0; key < BLOCKS; key += 2) {
            if (cache.has(key)) {
                cache.setCopy(key, false);
            }
        }
        for (int fresh = 0; fresh < BLOCKS / 8; fresh++) {
            cache.use(2_000_000 + fresh);
        }
        assertThat(here(cache, 1)).as("the oldest go now").isLessThan(BLOCKS / 2 - BLOCKS / 16);
    }

    private static int here(FlatCache cache, int from) {
        int here = 0;
        for (int key = from; key < BLOCKS; key += 2) {
            here += cache.has(key) ? 1 : 0;
        }
        return here;
    }

    @Test
    void givenPinnedLeaves_whenEvicting_thenTheyAreRefusedAndStay() {
        TreeStore store = new TreeStore(100);
        store.addClass(PolicyKind.IMPORTANCE.create(store));
        for (int record = 0; record < 100; record++) {
            store.admit(record, RecordView.NONE, 0);
            store.pin(record, record % 2 == 0);
        }
        for (int i = 0; i < 50; i++) {
            assertThat(store.evict(0) % 2).isEqualTo(1);
        }
        assertThat(store.evict(0)).isEqualTo(EvictionPolicy.NONE);
    }

    @Test
    void givenAMillionRecords_whenFull_thenSeventeenBytesARecordAndAConstant() {
        int records = 200_000;
        TreeStore store = new TreeStore(records);
        PolicyState state = new PolicyState(records);
        ImportancePolicy importancePolicy = new ImportancePolicy(store, state);
        store.addClass(importancePolicy);
        for (int record = 0; record < records; record++) {
            store.admit(record, RecordView.NONE, 0);
        }
        assertThat(state.arrayBytes()).isEqualTo(17L * records);
        assertThat(importancePolicy.heapBytes()).isLessThan(400_000);
        store.evict(0);
        assertThat(importancePolicy.heapBytes()).isLessThan(700_000);
        assertThat(importancePolicy.ghostBytes()).isBetween(32L * (records - 1), 64L * records + 1024);
    }

    @Test
    void givenImpossibleRules_whenMade_thenTheErrorNamesTheConstant() {
        assertThatThrownBy(() -> new ImportanceConfig(64, 0, 1, 1, 1, 1, 1)).hasMessageContaining("ghosts is 0.0");
    }

    @Test
    void givenAnnouncedBlocks_whenRoomIsNeeded_thenTheOthersGoFirstAndTheLatestAnnouncedNext() {
        PolicyState state = new PolicyState(500);
        TreeStore store = full(state, 500);
        for (int record = 0; record < 200; record++) {
            announce(store, record);
            store.use(499);
        }
        for (int i = 0; i < 300; i++) {
            assertThat(store.evict(0)).isGreaterThanOrEqualTo(200);
        }
        assertThat(store.evict(0)).as("announced late").isGreaterThan(100);
        store.use(0);
        assertThat(store.evict(0)).as("its request has come").isZero();
    }

    @Test
    void givenABlockThatIsUsedAllTheTime_whenRoomIsNeeded_thenItGoesBeforeTheAnnouncedOnes() {
        TreeStore store = full(new PolicyState(500), 500);
        for (int i = 0; i < 3 * AnnouncedRequests.horizon(0); i++) {
            store.use(499);
        }
        for (int record = 0; record < 100; record++) {
            announce(store, record);
        }
        for (int i = 0; i < 20; i++) {
            store.use(499);
        }
        for (int i = 0; i < 400; i++) {
            assertThat(store.evict(0)).isGreaterThanOrEqualTo(100);
        }
        assertThat(store.policy(0).score(0)).isGreaterThan(1);
    }

    /// Remembered blocks are counted by list, and a negative count is an error.
    @Test
    void givenAnnouncedBlock_whenForgotten_thenItGoesAndIsCountedWhereItStood() {
        TreeStore store = full(new PolicyState(10), 1);
        announce(store, 0);
        store.demote(0);
        assertThat(store.evict(0)).isZero();
        store.validate();
    }

    @Test
    void givenBlockAnnouncedTwiceBeforeItIsHere_whenAdmitted_thenItIsExemptUntilTheSecondUse() {
        PolicyState state = new PolicyState(11);
        TreeStore store = full(state, 10);
        store.policy(0).announce(11); // the fingerprint of the next admission
        store.policy(0).announce(11);
        store.admit(10, RecordView.NONE, 0);
        for (int i = 0; i < 10; i++) {
            assertThat(store.evict(0)).isNotEqualTo(10);
        }
        assertThat(store.evict(0)).isEqualTo(10);
    }

    @Test
    void givenAnnouncementThatNeverComesTrue_whenLongPast_thenTheBlockIsLikeOthers() {
        PolicyState state = new PolicyState(10);
        TreeStore store = full(state, 10);
        announce(store, 0);
        for (int i = 0; i < 3 * AnnouncedRequests.horizon(0); i++) {
            store.use(9);
        }
        for (int i = 0; i < 9; i++) {
            assertThat(store.evict(0)).isNotEqualTo(9);
        }
    }

    @Test
    void givenABlockAnnouncedManyTimes_whenNoneOfThemIsRecent_thenItsUsesDoNotExemptItForEver() {
        PolicyState state = new PolicyState(10);
        TreeStore store = full(state, 10);
        for (int i = 0; i < 200; i++) {
            announce(store, 0);
        }
        for (int i = 0; i < 3 * AnnouncedRequests.horizon(0) / 2; i++) {
            store.use(i % 10_000 == 0 ? 0 : 9);
        }
        assertThat(store.policy(0).score(0)).as("no longer exempt").isLessThan(1);
    }

    @Test
    void givenMoreBlocksAnnouncedToOneThanThereIsRoomFor_whenAnotherIsAsked_thenItsOwnStay() {
        PolicyState state = new PolicyState(20);
        TreeStore store = new TreeStore(20);
        store.addClass(new ImportancePolicy(store, state));
        store.addClass(new ImportancePolicy(store, state));
        store.policy(0).announce(11); // the fingerprint of the last admission
        store.policy(0).announce(11);
        for (int i = 0; i < 3 * AnnouncedRequests.horizon(0); i++) {
            store.policy(1).announce(1000 + i);
        }
        for (int record = 0; record < 11; record++) {
            store.admit(record, RecordView.NONE, 0);
        }
        store.use(0);
        for (int i = 0; i < 10; i++) {
            assertThat(store.evict(0)).isNotEqualTo(10);
        }
    }

    @Test
    void givenBlocksThatLeft_whenOneIsUsedElsewhere_thenItIsWorthMoreThanBeforeAndThanTheOther() {
        PolicyState state = new PolicyState(1000);
        TreeStore store = full(state, 999);
        EvictionPolicy policy = store.policy(0);
        int one = store.evict(0);
        int other = store.evict(0);
        for (int i = 0; i < 20_000; i++) {
            store.use(998);
        }
        double before = policy.score(one);
        policy.onUsedElsewhere(one);
        assertThat(policy.score(one)).isGreaterThan(before).isGreaterThan(policy.score(other));
        assertThat(policy.score(other)).isPositive();
        assertThat(policy.score(998)).isGreaterThan(policy.score(other));
        assertThat(policy.score(999)).as("never seen").isZero();
        assertThat(policy.size()).isEqualTo(997);
        store.policy(0).demote(998);
        assertThat(policy.score(998)).as("will never come back").isZero();
    }

    @Test
    void givenBlocksThatAnotherPushedOut_whenAskedForTheirWorth_thenTheyAreRememberedAndDroppedOnesAreNot() {
        PolicyState state = new PolicyState(1000);
        TreeStore store = full(state, 1000);
        store.evictByOther(998);
        store.forget(999);
        assertThat(store.policy(0).score(998)).isPositive();
        assertThat(store.policy(0).score(999)).isZero();
        store.validate();
    }

    @Test
    void givenABlockThatLeft_whenAnnounced_thenItIsExemptUntilThatIsLongPast() {
        PolicyState state = new PolicyState(1000);
        TreeStore store = full(state, 999);
        EvictionPolicy policy = store.policy(0);
        int one = store.evict(0);
        int other = store.evict(0);
        announce(store, one);
        announce(store, one);
        assertThat(policy.score(one)).isGreaterThan(1000 * policy.score(998));
        assertThat(policy.score(other)).isPositive().isLessThan(1);
        for (int i = 0; i < 3 * AnnouncedRequests.horizon(0); i++) {
            store.use(998);
        }
        assertThat(policy.score(one)).isZero();
        announce(store, one);
        assertThat(policy.score(one)).as("announced again").isEqualTo(BucketScores.EXEMPT_SCORE);
        store.validate();
    }

    /// A loop three times as long as there is room, known 500 uses ahead. What is remembered is counted by
    /// list as well, and a list that loses count is an error.
    @Test
    void givenBlocksThatLeaveAndAreAnnounced_whenTheyReturn_thenNoneIsCountedTwice() {
        FlatCache cache = new FlatCache(PolicyKind.IMPORTANCE, 20_000, BLOCKS);
        int hits = 0;
        for (int i = 0; i < 3 * AnnouncedRequests.horizon(0); i++) {
            cache.policy().announce(cache.fingerprintOf((i + 500) % 3000));
            hits += cache.use(i % 3000) ? 1 : 0;
        }
        System.out.printf("a loop of three times the room, announced: %.3f found%n", hits / 200_000.0);
        assertThat(hits).as("LRU finds none").isGreaterThan(20_000);
    }

    @Test
    void givenAPolicyThatDoesNotLearn_whenAskedForWorth_thenItHasNoOpinion() {
        TreeStore store = new TreeStore(10);
        store.addClass(PolicyKind.LRU.create(store));
        store.admit(0, RecordView.NONE, 0);
        assertThat(store.policy(0).score(0)).isNaN();
    }

    private static TreeStore full(PolicyState state, int records) {
        TreeStore store = new TreeStore(state.capacity());
        store.addClass(new ImportancePolicy(store, state));
        for (int record = 0; record < records; record++) {
            store.admit(record, RecordView.NONE, 0);
        }
        return store;
    }

    private static void announce(TreeStore store, int record) {
        store.policy(0).announce(store.fingerprint(record));
        store.policy(0).expect(record);
    }
}
