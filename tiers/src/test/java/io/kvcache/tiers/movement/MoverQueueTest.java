package io.kvcache.tiers.movement;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class MoverQueueTest {

    private final MoverQueue queue = new MoverQueue();

    private List<Integer> taken() {
        List<Integer> records = new ArrayList<>();
        for (MoverQueue.Load load = queue.nextLoad(); load != null; load = queue.nextLoad()) {
            records.add(load.record());
        }
        return records;
    }

    @Test
    void givenExpectedLoads_whenOneIsWanted_thenItGoesWithTheDemandedOnesAndOnce() {
        queue.expect(1, 0);
        queue.expect(2, 0);
        queue.demand(3, false, 0);
        queue.hurry(2);
        queue.hurry(2);
        assertThat(queue.loads()).isEqualTo(3);
        assertThat(taken()).containsExactly(3, 2, 1);
        assertThat(queue.loads()).isZero();
        assertThat(queue.isEmpty()).isTrue();
    }

    @Test
    void givenALoadThatWasTaken_whenItsRecordIsWanted_thenItIsNotReadAgain() {
        queue.expect(1, 0);
        assertThat(taken()).containsExactly(1);
        queue.hurry(1);
        assertThat(taken()).isEmpty();
        queue.expect(1, 0);
        queue.hurry(1);
        assertThat(taken()).containsExactly(1);
        assertThat(queue.loads()).isZero();
    }
}
