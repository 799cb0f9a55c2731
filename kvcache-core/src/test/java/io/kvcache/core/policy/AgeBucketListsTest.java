package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.policy.AgeBucketLists.AgeBuckets;
import io.kvcache.core.policy.ReuseTracker.AgeHistogram;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// The lists of leaves beside a plain scan of all of them.
final class AgeBucketListsTest {

    private static final int RECORDS = 400;
    private static final int STEPS = Repetitions.usualOrFull(8_000, 30_000);
    private static final int LANES = 5;

    @Test
    @Tag("slow")
    void givenRandomLeavesInGrowingLanes_whenTheLowestIsAskedFor_thenItIsThatOfAPlainScan() {
        for (int seed = 1; seed <= 4; seed++) {
            Random random = new Random(seed);
            // Few ranks make many equals.
            Model model = new Model(seed, seed % 2 == 0 ? 3 : 1 << 20);
            for (int step = 0; step < STEPS; step++) {
                model.step(random);
                model.validate("seed " + seed + ", step " + step);
            }
            assertThat(model.spans.size()).as("spans").isGreaterThan(20);
        }
    }

    @Test
    void givenNoLeaves_whenTheLowestIsAskedFor_thenThereIsNone() {
        AgeBucketLists buckets = new AgeBucketLists(new PolicyState(4), (span, list) -> 0, nothingRemembered());
        assertThat(buckets.lowestList()).isEqualTo(AgeBucketLists.NONE);
        buckets.add(AgeBucketLists.DEMOTED_LIST, 1);
        assertThat(buckets.lowestList()).isEqualTo(AgeBucketLists.DEMOTED_LIST);
        buckets.remove(AgeBucketLists.DEMOTED_LIST, 1);
        assertThat(buckets.lowestList()).isEqualTo(AgeBucketLists.NONE);
    }

    private static AgeHistogram nothingRemembered() {
        return new AgeHistogram(new ReuseModel(ImportanceConfig.DEFAULT));
    }

    /// Leaves by span and list, without anything remembered.
    private static final class Model {

        private final AgeBucketLists buckets;
        private final AgeBuckets ages = new AgeBuckets(0);
        private final List<TreeMap<Integer, Deque<Integer>>> spans = new ArrayList<>();
        private final Deque<Integer> spent = new ArrayDeque<>();
        private final int[] lists = new int[RECORDS];
        private final long[] stamps = new long[RECORDS];
        private final boolean[] listed = new boolean[RECORDS];
        private final int seed;
        private final int ranks;
        private int lanes = 1;
        private int epoch;
        private long now;

        Model(int seed, int ranks) {
            this.seed = seed;
            this.ranks = ranks;
            buckets = new AgeBucketLists(new PolicyState(RECORDS), this::rank, nothingRemembered());
            addSpan();
        }

        float rank(int span, int list) {
            long mixed = (31L * (31L * (31L * seed + epoch) + span) + list) * 0x9E3779B97F4A7C15L;
            return (mixed >>> 32) % ranks;
        }

        void step(Random random) {
            now += random.nextInt(3);
            int record = random.nextInt(RECORDS);
            int kind = random.nextInt(100);
            if (kind < 2) {
                cut();
            } else if (kind < 3) {
                epoch++;
                buckets.invalidateScores();
            } else if (kind < 4 && lanes < LANES && random.nextInt(20) == 0) {
                lanes++;
                buckets.addLabelClass();
            } else if (kind < 30) {
                takeLowest();
            } else if (listed[record]) {
                remove(record);
            } else {
                lists[record] = random.nextInt(30) == 0 ? -1 : random.nextInt(lanes * ImportanceWord.LISTS);
                stamps[record] = random.nextInt(4) == 0 ? random.nextLong(now + 1) : now;
                add(record);
            }
        }

        void validate(String when) {
            int lowest = buckets.lowestList();
            if (!spent.isEmpty()) {
                assertThat(lowest).as(when).isEqualTo(AgeBucketLists.DEMOTED_LIST);
                assertThat(buckets.oldest(lowest)).as(when).isEqualTo(spent.getFirst());
                return;
            }
            float least = Float.MAX_VALUE;
            for (int span = 0; span < spans.size(); span++) {
                for (Map.Entry<Integer, Deque<Integer>> each : spans.get(span).entrySet()) {
                    int list = each.getKey();
                    least = each.getValue().isEmpty() ? least : Math.min(least, rank(span, list));
                }
            }
            if (least == Float.MAX_VALUE) {
                assertThat(lowest).as(when).isEqualTo(AgeBucketLists.NONE);
                return;
            }
            int record = buckets.oldest(lowest);
            int span = ages.bucketOf(stamps[record]);
            assertThat(rank(span, lists[record])).as(when).isEqualTo(least);
            assertThat(record).as(when).isEqualTo(leaves(span, lists[record]).getFirst());
        }

        private void takeLowest() {
            int lowest = buckets.lowestList();
            if (lowest != AgeBucketLists.NONE) {
                remove(buckets.oldest(lowest));
            }
        }

        private void add(int record) {
            listed[record] = true;
            if (lists[record] < 0) {
                spent.addFirst(record);
                buckets.add(AgeBucketLists.DEMOTED_LIST, record);
                return;
            }
            int span = ages.bucketOf(stamps[record]);
            Deque<Integer> list = leaves(span, lists[record]);
            if (span == spans.size() - 1) {
                list.addLast(record);
            } else {
                list.addFirst(record);
            }
            buckets.add(bucket(record), record);
        }

        private void remove(int record) {
            listed[record] = false;
            if (lists[record] < 0) {
                spent.remove((Object) record);
                buckets.remove(AgeBucketLists.DEMOTED_LIST, record);
                return;
            }
            int span = ages.bucketOf(stamps[record]);
            leaves(span, lists[record]).remove((Object) record);
            buckets.remove(bucket(record), record);
        }

        private Deque<Integer> leaves(int span, int list) {
            return spans.get(span).computeIfAbsent(list, absent -> new ArrayDeque<>());
        }

        private int bucket(int record) {
            return buckets.listFor(lists[record], stamps[record]);
        }

        private void addSpan() {
            spans.add(new TreeMap<>());
        }

        private void cut() {
            epoch++;
            now++; // a span begins with a use that is newer than all before
            buckets.startBucket(now);
            ages.startBucket(now);
            addSpan();
            for (int span = ages.findMergeable(0, now); span >= 0; span = ages.findMergeable(span, now)) {
                ages.merge(span);
                TreeMap<Integer, Deque<Integer>> first = spans.get(span);
                spans.remove(span + 1)
                        .forEach((list, leaves) -> first.computeIfAbsent(list, absent -> new ArrayDeque<>())
                                .addAll(leaves));
            }
            buckets.invalidateScores();
        }
    }
}
