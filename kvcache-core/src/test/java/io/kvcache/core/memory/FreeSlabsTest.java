package io.kvcache.core.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.memory.SlabPool.FreeSlabs;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

final class FreeSlabsTest {

    @Test
    void givenHoles_whenARunIsTaken_thenTheLowestThatFits() {
        FreeSlabs free = new FreeSlabs(8);
        assertThat(free.allocateRun(8)).isZero();
        assertThat(free.allocateRun(1)).isEqualTo(-1);
        free.release(1);
        free.release(3);
        free.release(4);
        free.release(7);
        assertThat(free.allocateRun(2)).isEqualTo(3);
        assertThat(free.allocateRun(2)).isEqualTo(-1);
        assertThat(free.allocateRun(1)).isEqualTo(1);
        assertThat(free.count()).isEqualTo(1);
    }

    @Test
    void givenRandomRuns_whenTakenAndGiven_thenAsInAnArrayOfBooleans() {
        SplittableRandom random = new SplittableRandom(5);
        FreeSlabs free = new FreeSlabs(20);
        boolean[] taken = new boolean[20];
        for (int step = 0; step < 5000; step++) {
            int length = 1 + random.nextInt(4);
            if (random.nextBoolean()) {
                int expected = lowestRun(taken, length);
                assertThat(free.allocateRun(length)).as("seed 5 step %d", step).isEqualTo(expected);
                mark(taken, expected, expected < 0 ? 0 : length, true);
            } else {
                int index = random.nextInt(20);
                free.release(index);
                taken[index] = false;
            }
            assertThat(free.count()).isEqualTo(20 - count(taken));
        }
    }

    private static void mark(boolean[] taken, int from, int length, boolean value) {
        for (int i = 0; i < length; i++) {
            taken[from + i] = value;
        }
    }

    private static int lowestRun(boolean[] taken, int length) {
        for (int start = 0; start + length <= taken.length; start++) {
            int at = 0;
            while (at < length && !taken[start + at]) {
                at++;
            }
            if (at == length) {
                return start;
            }
        }
        return -1;
    }

    private static int count(boolean[] taken) {
        int count = 0;
        for (boolean each : taken) {
            count += each ? 1 : 0;
        }
        return count;
    }
}
