package io.kvcache.planner.baseline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class GhostCountsTest {

    @Test
    void givenRandomPutsAndTakes_whenComparedWithAMap_thenEqual() {
        for (long seed : new long[] {5, 6, 7}) {
            System.out.println("ghost table: seed " + seed);
            Random random = new Random(seed);
            int capacity = 64;
            GhostCounts table = new GhostCounts(capacity);
            Map<Long, int[]> model = new HashMap<>();
            ArrayDeque<long[]> seats = new ArrayDeque<>();
            for (int step = 0; step < 50_000; step++) {
                long key = random.nextInt(150) * 0x1_0000_0000L;
                assertThat(table.count(key)).isEqualTo(model.containsKey(key) ? model.get(key)[0] : 0);
                if (random.nextInt(3) == 0) {
                    int[] known = model.remove(key);
                    assertThat(table.removeKey(key)).isEqualTo(known == null ? 0 : known[0]);
                } else {
                    if (seats.size() == capacity) {
                        long[] freed = seats.remove();
                        model.computeIfPresent(freed[0], (k, entry) -> entry[1] == (int) freed[1] ? null : entry);
                    }
                    table.put(key, step + 1);
                    model.put(key, new int[] {step + 1, step});
                    seats.add(new long[] {key, step});
                }
                assertThat(table.size()).isEqualTo(model.size()).isLessThanOrEqualTo(capacity);
            }
        }
    }

    @Test
    void givenMoreKeysThanSeats_whenAsked_thenTheOldestAreForgotten() {
        GhostCounts table = new GhostCounts(3);
        for (long key = 0; key < 5; key++) {
            table.put(key, 9);
        }
        assertThat(table.removeKey(0)).isZero();
        assertThat(table.removeKey(1)).isZero();
        assertThat(table.removeKey(2)).isEqualTo(9);
        assertThat(table.removeKey(2)).isZero();
    }

    @Test
    void givenImpossibleCapacity_whenConstructed_thenTheErrorNamesIt() {
        assertThatThrownBy(() -> new GhostCounts(0)).hasMessageContaining("ghost capacity is 0");
    }
}
