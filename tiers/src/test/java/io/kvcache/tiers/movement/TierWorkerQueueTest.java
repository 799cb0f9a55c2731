package io.kvcache.tiers.movement;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class TierWorkerQueueTest {

    private final TierWorkerQueue queue = new TierWorkerQueue();

    private List<Integer> taken() {
        List<Integer> records = new ArrayList<>();
        for (TierWorkerQueue.Load load = queue.nextLoad(); load != null; load = queue.nextLoad()) {
            records.add(load.record);
        }
        return records;
    }

    @Test
    void givenExpectedLoads_whenOneIsWanted_thenItGoesWithTheDemandedOnesAndOnce() {
        queue.addPrefetch(1, 0);
        queue.addPrefetch(2, 0);
        queue.addDemanded(3, false, 0);
        queue.prioritize(2);
        queue.prioritize(2);
        assertThat(queue.loadCount()).isEqualTo(3);
        assertThat(taken()).containsExactly(3, 2, 1);
        assertThat(queue.loadCount()).isZero();
        assertThat(queue.isEmpty()).isTrue();
    }

    @Test
    void givenALoadThatWasTaken_whenItsRecordIsWanted_thenItIsNotReadAgain() {
        queue.addPrefetch(1, 0);
        assertThat(taken()).containsExactly(1);
        queue.prioritize(1);
        assertThat(taken()).isEmpty();
        queue.addPrefetch(1, 0);
        queue.prioritize(1);
        assertThat(taken()).containsExactly(1);
        assertThat(queue.loadCount()).isZero();
    }
}
