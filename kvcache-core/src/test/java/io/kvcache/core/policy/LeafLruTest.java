package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

/// Touching the deepest block alone gives the victims of touching the whole path. Also the size of the heap.
final class LeafLruTest {

    private static final int RECORDS = 200;
    private static final long[] SEEDS = {3, 11, 99, 4711, 65_537};

    @Test
    void givenRandomTrees_whenEvicting_thenVictimsEqualThoseOfTouchingWholePaths() {
        for (long seed : SEEDS) {
            System.out.println("leaf LRU against full paths: seed " + seed);
            Random random = new Random(seed);
            TreeStore store = new TreeStore(RECORDS);
            LeafLru lru = new LeafLru(store, new PolicyState(RECORDS));
            store.addClass(lru);
            int[] lastUse = new int[RECORDS];
            int clock = 0;
            for (int step = 0; step < 30_000; step++) {
                int record = random.nextInt(RECORDS);
                if (!store.isResident(record)) {
                    int parent = random.nextInt(RECORDS);
                    store.admit(record, store.isResident(parent) ? parent : RecordView.NONE, 0);
                    clock = usePath(store, lastUse, record, clock);
                } else if (random.nextInt(3) == 0) {
                    int expected = store.lowest(0, candidate -> lastUse[candidate]);
                    assertThat(store.evict(0))
                            .as("seed %d, step %d", seed, step)
                            .isEqualTo(expected);
                } else if (random.nextInt(20) == 0 && store.isLeaf(record)) {
                    store.forget(record);
                } else {
                    store.use(record);
                    clock = usePath(store, lastUse, record, clock);
                }
            }
        }
    }

    @Test
    void givenPinnedLeaf_whenItRefuses_thenItCountsAsUsedNow() {
        TreeStore store = new TreeStore(3);
        store.addClass(new LeafLru(store, new PolicyState(3)));
        for (int record = 0; record < 3; record++) {
            store.admit(record, RecordView.NONE, 0);
        }
        store.pin(0, true);
        assertThat(store.evict(0)).isEqualTo(1);
        store.pin(0, false);
        assertThat(store.evict(0)).isEqualTo(2);
    }

    @Test
    void givenMoreRefusalsThanTheBound_whenEvicting_thenTheNextCallFindsTheVictim() {
        int pinned = 1500;
        TreeStore store = new TreeStore(pinned + 1);
        store.addClass(new LeafLru(store, new PolicyState(pinned + 1)));
        for (int record = 0; record <= pinned; record++) {
            store.admit(record, RecordView.NONE, 0);
            store.pin(record, record != pinned);
        }
        assertThat(store.evict(0)).isEqualTo(EvictionPolicy.NONE);
        assertThat(store.evict(0)).isEqualTo(pinned);
    }

    @Test
    void givenOnlyLeaves_whenFull_thenAtMostSeventeenBytesARecord() {
        for (int records : new int[] {1000, 4096, 65_537, 300_000}) {
            TreeStore store = new TreeStore(records);
            PolicyState state = new PolicyState(records);
            LeafLru lru = new LeafLru(store, state);
            store.addClass(lru);
            for (int record = 0; record < records; record++) {
                store.admit(record, RecordView.NONE, 0);
            }
            double bytes = (double) (state.arrayBytes() + lru.heapBytes()) / records;
            assertThat(bytes).as("bytes a record of %d", records).isLessThanOrEqualTo(17);
        }
    }

    @Test
    void givenRecordsThatComeAndGoUnevicted_whenRepeated_thenTheHeapStaysSmall() {
        TreeStore store = new TreeStore(100);
        PolicyState state = new PolicyState(100);
        LeafLru[] policies = {new LeafLru(store, state), new LeafLru(store, state)};
        store.addClass(policies[0]);
        store.addClass(policies[1]);
        for (int round = 0; round < 1000; round++) {
            for (int record = 0; record < 100; record++) {
                store.admit(record, RecordView.NONE, round & 1);
                store.demote(record);
            }
            for (int record = 0; record < 100; record++) {
                store.forget(record);
            }
        }
        assertThat(policies[0].heapBytes()).isLessThan(4000);
        assertThat(policies[1].heapBytes()).isLessThan(4000);
    }

    @Test
    void givenDemotedPathHeadFirst_whenEvicting_thenTheWholePathGoesBeforeOthers() {
        TreeStore store = new TreeStore(6);
        store.addClass(new LeafLru(store, new PolicyState(6)));
        for (int record = 0; record < 6; record++) {
            store.admit(record, record % 3 == 0 ? RecordView.NONE : record - 1, 0);
        }
        for (int record = 3; record < 6; record++) {
            store.demote(record);
        }
        for (int expected : new int[] {5, 4, 3, 2, 1, 0}) {
            assertThat(store.evict(0)).isEqualTo(expected);
        }
    }

    @Test
    void givenManyTouchesWithoutEvictions_whenEvicting_thenTheOrderIsStillThatOfTheLastUse() {
        int records = 20_000;
        TreeStore store = new TreeStore(records);
        store.addClass(new LeafLru(store, new PolicyState(records)));
        for (int record = 0; record < records; record++) {
            store.admit(record, RecordView.NONE, 0);
        }
        for (int record = records - 1; record >= 0; record--) {
            store.use(record);
        }
        for (int record = records - 1; record >= 0; record--) {
            assertThat(store.evict(0)).isEqualTo(record);
        }
    }

    private static int usePath(TreeStore store, int[] lastUse, int record, int clock) {
        int now = clock;
        for (int at = record; at != RecordView.NONE; at = store.parent(at)) {
            lastUse[at] = ++now;
        }
        return now;
    }
}
