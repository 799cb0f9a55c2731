package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Counters of [ImportancePolicy] beside a recount, through every call that a store can make.
final class ImportanceAccountingTest {

    private static final int TENANTS = 2;
    private static final int BLOCKS = 20_000;
    private static final int STEPS = Repetitions.usualOrFull(16_000, 40_000);

    @Test
    @Tag("slow")
    void givenTwoTenantsAndAllThatCanBeSaid_whenRecounted_thenNothingIsCountedTwiceOrForgotten() {
        for (int seed = 1; seed <= 3; seed++) {
            System.out.println("importance's books, seed " + seed);
            Random random = new Random(seed);
            Forest forest = new Forest(random);
            // One stays tiny, another grows until the memory of what has left is begun anew.
            int[] room = seed == 1 ? new int[] {12, 40} : new int[] {30, 100};
            for (int step = 0; step < STEPS; step++) {
                int tenant = random.nextInt(TENANTS);
                room[1] = seed == 3 && step > STEPS / 2 ? 3000 : room[1];
                forest.act(random, tenant, room[tenant]);
                if (step % 100 == 0) {
                    forest.validate();
                }
            }
            forest.drain();
        }
    }

    @Test
    @Tag("slow")
    void givenTwoTenants_whenOneHasUsedAMillion_thenTheOthersBooksAreRight() {
        Random random = new Random(4);
        Forest forest = new Forest(random);
        for (int step = 0; step < 2000; step++) {
            forest.act(random, step % TENANTS, 50);
        }
        int record = forest.someResident(random, 0);
        for (int i = 0; i < 1_000_000; i++) {
            forest.policies[0].touch(record);
        }
        forest.validate();
        for (int step = 0; step < 2000; step++) {
            forest.act(random, step % TENANTS, 50);
            forest.validate();
        }
        forest.drain();
    }

    /// Each tenant's blocks in trees, each with a record of its own, resident or not.
    private static final class Forest implements RecordView {

        private final int[] parents = new int[TENANTS * BLOCKS];
        private final int[] depths = new int[TENANTS * BLOCKS];
        private final int[] children = new int[TENANTS * BLOCKS];
        private final int[] sizes = new int[TENANTS];
        private final BitSet resident = new BitSet();
        private final BitSet pinned = new BitSet();
        private final BitSet copies = new BitSet();
        private final BitSet demoted = new BitSet();
        private final ImportancePolicy[] policies = new ImportancePolicy[TENANTS];

        Forest(Random random) {
            PolicyState state = new PolicyState(TENANTS * BLOCKS);
            Arrays.setAll(policies, tenant -> new ImportancePolicy(this, state));
            for (int record = 0; record < parents.length; record++) {
                int within = record % BLOCKS;
                boolean root = within == 0 || random.nextInt(30) == 0;
                parents[record] = root ? NONE : record - 1 - random.nextInt(Math.min(within, 3));
                depths[record] = root ? 0 : depths[parents[record]] + 1;
            }
        }

        void act(Random random, int tenant, int room) {
            ImportancePolicy policy = policies[tenant];
            int any = any(random, tenant);
            int here = someResident(random, tenant);
            int kind = random.nextInt(20);
            if (here == NONE || kind < 8) {
                use(any, room);
            } else if (kind == 8) {
                policy.demote(here);
                demoted.set(here);
            } else if (kind == 9) {
                policy.label(here, random.nextInt(EvictionPolicy.REUSE_CLASSES));
            } else if (kind == 10) {
                policy.setWeight(here, random.nextInt(EvictionPolicy.MAX_HALVINGS + 1));
            } else if (kind == 11) {
                policy.expect(here);
                demoted.clear(here);
            } else if (kind < 14) {
                policy.announce(fingerprint(kind == 12 ? any : here));
            } else if (kind == 14) {
                evict(tenant);
            } else if (kind == 15 && children[here] == 0) {
                policy.onEvicted(here);
                leave(here);
            } else if (kind == 16 && children[here] == 0) {
                policy.forget(here);
                leave(here);
            } else if (kind == 17) {
                copies.flip(here);
                policy.onCopyChanged(here);
            } else if (kind == 18 && !resident.get(any) && random.nextBoolean()) {
                policy.onUsedElsewhere(any);
            } else if (kind == 18 && !resident.get(any) && sizes[tenant] < room) {
                int guess = missing(any);
                enter(guess);
                policy.onPrefetched(guess);
            } else if (kind == 19) {
                pinned.set(here, random.nextInt(4) == 0);
            }
        }

        /// Some are used far oftener than others.
        private int any(Random random, int tenant) {
            return tenant * BLOCKS + (int) (BLOCKS * Math.pow(random.nextDouble(), 3));
        }

        int someResident(Random random, int tenant) {
            int from = any(random, tenant);
            int next = resident.nextSetBit(from);
            int found = next >= 0 && next < (tenant + 1) * BLOCKS ? next : resident.previousSetBit(from);
            return found >= tenant * BLOCKS ? found : NONE;
        }

        /// A request that ends at this block, as far as there is room for what it puts.
        private void use(int record, int room) {
            int tenant = record / BLOCKS;
            for (int at = record; at != NONE; at = parents[at]) {
                if (resident.get(at)) {
                    policies[tenant].touch(at);
                    demoted.clear(at);
                }
            }
            for (int i = 0; i <= depths[record] && missing(record) != NONE; i++) {
                if (sizes[tenant] < room || evict(tenant)) {
                    admit(missing(record)); // what lay above may just have gone
                }
            }
        }

        /// The first block of the path that is not resident, or [#NONE].
        private int missing(int record) {
            int first = NONE;
            for (int at = record; at != NONE; at = parents[at]) {
                first = resident.get(at) ? first : at;
            }
            return first;
        }

        private void admit(int record) {
            enter(record);
            policies[record / BLOCKS].admit(record);
        }

        private void enter(int record) {
            resident.set(record);
            sizes[record / BLOCKS]++;
            if (parents[record] != NONE) {
                children[parents[record]]++;
            }
        }

        private boolean evict(int tenant) {
            boolean first = anySpent(tenant);
            int victim = policies[tenant].evict(this::claim);
            if (victim == NONE) {
                return false;
            }
            assertThat(victim / BLOCKS).isEqualTo(tenant);
            assertThat(children[victim]).as("children of a victim").isZero();
            assertThat(demoted.get(victim)).as("one that is spent").isEqualTo(first);
            leave(victim);
            return true;
        }

        private boolean claim(int record) {
            if (pinned.get(record)) {
                demoted.clear(record); // it is in use
                return false;
            }
            return true;
        }

        private boolean anySpent(int tenant) {
            int end = (tenant + 1) * BLOCKS;
            for (int at = demoted.nextSetBit(tenant * BLOCKS); at >= 0 && at < end; at = demoted.nextSetBit(at + 1)) {
                if (children[at] == 0 && !pinned.get(at)) {
                    return true;
                }
            }
            return false;
        }

        private void leave(int record) {
            resident.clear(record);
            pinned.clear(record);
            demoted.clear(record);
            copies.clear(record);
            sizes[record / BLOCKS]--;
            int parent = parents[record];
            if (parent != NONE && --children[parent] == 0) {
                policies[record / BLOCKS].onBecameLeaf(parent);
            }
        }

        void validate() {
            for (int tenant = 0; tenant < TENANTS; tenant++) {
                assertThat(policies[tenant].size()).isEqualTo(sizes[tenant]);
                policies[tenant].validate();
            }
        }

        /// Every block can be evicted.
        void drain() {
            pinned.clear();
            for (int tenant = 0; tenant < TENANTS; tenant++) {
                while (sizes[tenant] > 0) {
                    assertThat(evict(tenant)).as("one of " + sizes[tenant]).isTrue();
                }
            }
            validate();
            assertThat(resident.isEmpty()).isTrue();
        }

        @Override
        public int capacity() {
            return parents.length;
        }

        @Override
        public int parent(int record) {
            return parents[record];
        }

        @Override
        public int depth(int record) {
            return depths[record];
        }

        @Override
        public int residentChildren(int record) {
            return children[record];
        }

        @Override
        public long bytes(int record) {
            return 4096;
        }

        @Override
        public boolean hasCopy(int record) {
            return copies.get(record);
        }

        @Override
        public long fingerprint(int record) {
            return (record + 1) * 0xD1B54A32D192ED03L;
        }
    }
}
