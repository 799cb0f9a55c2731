package io.kvcache.core.tree;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.tree.RecordPool.NewRecordFields;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

final class BlockTreeTest {

    private static final int NONE = -1;

    private final RecordPool pool = new RecordPool(Arena.ofAuto().allocate(RecordLayout.spanBytes(64), 64), 64);
    private final BlockTree tree = new BlockTree(pool);

    private int insert(long key, int parent) {
        int depth = parent == NONE ? 0 : pool.depth(parent) + 1;
        return tree.insert(new NewRecordFields(~key, key, parent, depth, 3 << 16, 4096, 99, 17));
    }

    private int sealed(long key, int parent) {
        int record = insert(key, parent);
        pool.state(record, ControlWord.SEALED, 0);
        return record;
    }

    private int found(long key) {
        long handle = tree.find(~key, key);
        return RecordHandle.isFound(handle) ? RecordHandle.record(handle) : NONE;
    }

    private void remove(int record) {
        tree.removeFromIndex(record);
        tree.removeResident(record);
        tree.remove(record);
    }

    @Test
    void givenAReservedRecord_whenLookedUp_thenOnlyWritersFindIt() {
        int record = insert(1, NONE);
        assertThat(found(1)).isEqualTo(NONE);
        assertThat(tree.findAny(~1, 1)).isEqualTo(record);
        assertThat(ControlWord.state(pool.control(record))).isEqualTo(ControlWord.RESERVED);
        assertThat(ControlWord.pins(pool.control(record))).isEqualTo(1);
        pool.state(record, ControlWord.SEALED, 0);
        assertThat(found(1)).isEqualTo(record);
        assertThat(tree.find(1, 1)).isEqualTo(RecordHandle.MISS);
    }

    @Test
    void givenARecordAgain_whenFound_thenTheHandleHasItsNewGeneration() {
        int record = sealed(1, NONE);
        long old = tree.find(~1, 1);
        remove(record);
        assertThat(tree.find(~1, 1)).isEqualTo(RecordHandle.MISS);
        assertThat(sealed(1, NONE)).isEqualTo(record);
        long again = tree.find(~1, 1);
        assertThat(RecordHandle.record(again)).isEqualTo(RecordHandle.record(old));
        assertThat(RecordHandle.generation(again)).isEqualTo(RecordHandle.generation(old) + 1);
    }

    @Test
    void givenTwoRecordsOfOneKey_whenFound_thenTheYoungerThatIsSealed() {
        int older = sealed(1, NONE);
        int younger = insert(1, NONE);
        assertThat(found(1)).isEqualTo(older);
        assertThat(tree.findAny(~1, 1)).isEqualTo(younger);
        pool.state(younger, ControlWord.SEALED, 0);
        assertThat(found(1)).isEqualTo(younger);
    }

    @Test
    void givenSeveralReservedRecordsOfOneKey_whenLookedUp_thenMissUntilOneIsSealed() {
        int first = insert(1, NONE);
        insert(1, NONE);
        insert(1, NONE);
        assertThat(tree.find(~1, 1)).isEqualTo(RecordHandle.MISS);
        pool.state(first, ControlWord.SEALED, 0);
        assertThat(found(1)).isEqualTo(first);
        pool.state(first, ControlWord.DELETED, 1);
        assertThat(tree.find(~1, 1)).as("it may have been replaced").isEqualTo(RecordHandle.UNSURE);
        tree.removeFromIndex(first);
        assertThat(tree.find(~1, 1)).isEqualTo(RecordHandle.MISS);
    }

    @Test
    void givenADoomedRecordStillInItsBucket_whenFound_thenTheReaderIsUnsure() {
        int record = sealed(1, NONE);
        pool.state(record, ControlWord.DELETED, 1);
        assertThat(tree.find(~1, 1)).isEqualTo(RecordHandle.UNSURE);
        tree.removeFromIndex(record);
        assertThat(tree.find(~1, 1)).isEqualTo(RecordHandle.MISS);
    }

    @Test
    void givenOneBucketOfMany_whenAnyIsTakenOut_thenTheOthersAreFound() {
        for (int out = 0; out < 20; out++) {
            List<Integer> records = new ArrayList<>();
            for (long key = 0; key < 20; key++) {
                records.add(sealed(key, NONE)); // small low words all fall into bucket 0
            }
            remove(records.get(out));
            for (int key = 0; key < 20; key++) {
                assertThat(found(key))
                        .as("key %d without %d", key, out)
                        .isEqualTo(key == out ? NONE : records.get(key));
            }
            records.remove(/* index */ out);
            records.forEach(this::remove);
            assertThat(pool.live()).isZero();
        }
    }

    @Test
    void givenAllRecordsTaken_whenInserting_thenNone() {
        for (int key = 0; key < 64; key++) {
            assertThat(insert(key, NONE)).isNotEqualTo(NONE);
        }
        assertThat(insert(64, NONE)).isEqualTo(NONE);
    }

    @Test
    void givenAFamily_whenVisitedBelow_thenChildrenComeFirstAndMayLeave() {
        int root = sealed(0, NONE);
        int left = sealed(1, root);
        int right = sealed(2, root);
        int leaf = sealed(3, left);
        int other = sealed(4, NONE);
        List<Integer> visited = new ArrayList<>();
        tree.forEachDescendant(root, record -> {
            visited.add(record);
            remove(record);
        });
        assertThat(visited).containsExactlyInAnyOrder(root, left, right, leaf);
        assertThat(visited.indexOf(leaf)).isLessThan(visited.indexOf(left));
        assertThat(visited.getLast()).isEqualTo(root);
        assertThat(pool.live()).isEqualTo(1);
        assertThat(found(4)).isEqualTo(other);
    }

    /// Random families against a map from child to parent.
    @Test
    void givenRandomFamilies_whenTheyChange_thenLinksAndCountsAgreeWithAModel() {
        for (long seed = 1; seed <= 5; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            Map<Integer, Integer> parents = new HashMap<>();
            long nextKey = 1000;
            for (int step = 0; step < 3000; step++) {
                List<Integer> all = List.copyOf(parents.keySet());
                int any = all.isEmpty() ? NONE : all.get(random.nextInt(all.size()));
                boolean leaf = any != NONE && !parents.containsValue(any);
                if (random.nextBoolean() && all.size() < 64) {
                    int parent = random.nextInt(4) == 0 ? NONE : any;
                    parents.put(sealed(nextKey++ * 0x9E3779B97F4A7C15L, parent), parent);
                } else if (leaf) {
                    remove(any);
                    parents.remove(any);
                }
                checkFamilies(parents, "seed " + seed + " step " + step);
            }
            parents.keySet().stream()
                    .sorted((a, b) -> pool.depth(b) - pool.depth(a))
                    .forEach(this::remove);
        }
    }

    private void checkFamilies(Map<Integer, Integer> parents, String when) {
        assertThat(pool.live()).as(when).isEqualTo(parents.size());
        parents.forEach((record, parent) -> {
            assertThat(pool.parent(record)).as(when).isEqualTo(parent);
            assertThat(tree.findAny(pool.keyHi(record), pool.keyLo(record))).isEqualTo(record);
            List<Integer> children = new ArrayList<>();
            tree.forEachChild(record, children::add);
            long expected = parents.values().stream().filter(record::equals).count();
            assertThat(children).as(when).hasSize((int) expected).allMatch(child -> record.equals(parents.get(child)));
            assertThat(pool.residentChildren(record)).as(when).isEqualTo((int) expected);
        });
    }
}
