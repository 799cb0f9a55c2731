package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Contract of every eviction policy, whatever it ranks by.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
public abstract class EvictionPolicyContract {

    private static final int RECORDS = 300;
    private static final int CLASSES = 3;
    private static final int STEPS = 20_000;
    private static final long[] SEEDS = {1, 7, 42, 20_261_120};

    /// The policies to test.
    protected abstract List<EvictionPolicyFactory> policies();

    @ParameterizedTest
    @MethodSource("policies")
    protected void givenRandomOperations_whenEvicting_thenVictimsAreUnpinnedLeavesAndSizesAgree(
            EvictionPolicyFactory kind) {
        for (long seed : SEEDS) {
            System.out.println("policy contract: " + kind.commandName() + ", seed " + seed);
            Random random = new Random(seed);
            TreeStore store = store(kind, CLASSES);
            for (int step = 0; step < STEPS; step++) {
                act(store, random);
                store.validate();
            }
            drain(store);
        }
    }

    @ParameterizedTest
    @MethodSource("policies")
    protected void givenAllPinned_whenEvicting_thenNoneUntilUnpinned(EvictionPolicyFactory kind) {
        TreeStore store = store(kind, 1);
        for (int record = 0; record < 20; record++) {
            store.admit(record, RecordView.NONE, 0);
            store.pin(record, true);
        }
        assertThat(store.evict(0)).isEqualTo(EvictionPolicy.NONE);
        assertThat(store.evict(0)).isEqualTo(EvictionPolicy.NONE);
        assertThat(store.policy(0).size()).isEqualTo(20);
        store.pin(13, false);
        assertThat(store.evict(0)).isEqualTo(13);
        assertThat(store.evict(0)).isEqualTo(EvictionPolicy.NONE);
    }

    @ParameterizedTest
    @MethodSource("policies")
    protected void givenDemotedLeaf_whenEvicting_thenItGoesFirst(EvictionPolicyFactory kind) {
        TreeStore store = store(kind, 1);
        for (int record = 0; record < 50; record++) {
            store.admit(record, RecordView.NONE, 0);
            store.use(record);
        }
        store.demote(31);
        assertThat(store.evict(0)).isEqualTo(31);
    }

    @ParameterizedTest
    @MethodSource("policies")
    protected void givenDemotedParent_whenItsChildHasLeft_thenItGoesNext(EvictionPolicyFactory kind) {
        TreeStore store = store(kind, 1);
        store.admit(0, RecordView.NONE, 0);
        store.admit(1, 0, 0);
        for (int record = 2; record < 10; record++) {
            store.admit(record, RecordView.NONE, 0);
        }
        store.demote(0);
        store.demote(1);
        assertThat(store.evict(0)).isEqualTo(1);
        assertThat(store.evict(0)).isEqualTo(0);
    }

    @ParameterizedTest
    @MethodSource("policies")
    protected void givenForgottenRecord_whenAdmittedToAnotherClass_thenOnlyThatClassEvictsIt(
            EvictionPolicyFactory kind) {
        TreeStore store = store(kind, 2);
        store.admit(5, RecordView.NONE, 0);
        store.forget(5);
        store.admit(5, RecordView.NONE, 1);
        assertThat(store.evict(0)).isEqualTo(EvictionPolicy.NONE);
        assertThat(store.evict(1)).isEqualTo(5);
    }

    @ParameterizedTest
    @MethodSource("policies")
    protected void givenNothingResident_whenAsked_thenNoVictimAndNoColdestUse(EvictionPolicyFactory kind) {
        TreeStore store = store(kind, 1);
        assertThat(store.evict(0)).isEqualTo(EvictionPolicy.NONE);
        assertThat(store.policy(0).victimLastUse()).isEqualTo(Long.MAX_VALUE);
        store.admit(0, RecordView.NONE, 0);
        assertThat(store.policy(0).victimLastUse()).isBetween(1L, 100L);
    }

    @ParameterizedTest
    @MethodSource("policies")
    protected void givenOneLongChain_whenDrained_thenTailsGoBeforeHeads(EvictionPolicyFactory kind) {
        TreeStore store = store(kind, 1);
        for (int record = 0; record < RECORDS; record++) {
            store.admit(record, record - 1, 0);
        }
        for (int record = RECORDS - 1; record >= 0; record--) {
            assertThat(store.evict(0)).isEqualTo(record);
        }
    }

    private static TreeStore store(EvictionPolicyFactory kind, int classes) {
        TreeStore store = new TreeStore(RECORDS);
        PolicyState state = new PolicyState(RECORDS);
        for (int i = 0; i < classes; i++) {
            store.addClass(kind.create(store, state));
        }
        return store;
    }

    private static void act(TreeStore store, Random random) {
        int record = random.nextInt(RECORDS);
        if (!store.isResident(record)) {
            int other = random.nextInt(RECORDS);
            int parent = store.isResident(other) ? other : RecordView.NONE;
            if (random.nextInt(5) == 0) {
                store.prefetch(record, parent, random.nextInt(CLASSES));
            } else {
                store.admit(record, parent, random.nextInt(CLASSES));
            }
            return;
        }
        int choice = random.nextInt(100);
        if (choice < 50) {
            store.use(record);
        } else if (choice < 75) {
            store.evict(random.nextInt(CLASSES));
        } else if (choice < 90) {
            store.pin(record, random.nextInt(4) == 0);
        } else if (choice < 92) {
            store.policy(store.owner(record)).expect(record);
        } else if (choice < 94) {
            store.demote(record);
        } else if (choice < 95) {
            EvictionPolicy policy = store.policy(store.owner(record));
            policy.label(record, random.nextInt(EvictionPolicy.REUSE_CLASSES));
            policy.setWeight(record, random.nextInt(EvictionPolicy.MAX_HALVINGS + 1));
        } else if (store.isLeaf(record) && !store.isPinned(record)) {
            store.forget(record);
        } else {
            store.policy(store.owner(record)).victimLastUse();
        }
    }

    /// Everything unpinned goes, whatever state the random operations left; a class may have to wait for another.
    private static void drain(TreeStore store) {
        Arrays.stream(store.residents()).forEach(record -> store.pin(record, false));
        boolean progress = true;
        while (progress) {
            progress = false;
            for (int slotClass = 0; slotClass < CLASSES; slotClass++) {
                while (store.evict(slotClass) != EvictionPolicy.NONE) {
                    progress = true;
                }
            }
        }
        assertThat(store.residents()).isEmpty();
        store.validate();
    }
}
