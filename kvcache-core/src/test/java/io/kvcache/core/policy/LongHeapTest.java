package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.LeafHeap.LongHeap;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class LongHeapTest {

    @Test
    void givenRandomScores_whenPopped_thenAscendingAndEqualScoresByRecord() {
        Random random = new Random(8);
        long[] scores = random.longs(1000, 0, 300).toArray();
        assertThat(popAll(scores, 1000)).isEqualTo(sorted(scores));
    }

    /// With 2^30 records 33 bits are left for a key, and these scores span 54.
    @Test
    void givenScoresFartherApartThanAKeyCanTell_whenPopped_thenStillAscending() {
        Random random = new Random(9);
        long[] scores = IntStream.range(0, 500)
                .mapToLong(i -> random.nextLong(1, 1L << (1 + random.nextInt(54))))
                .toArray();
        assertThat(popAll(scores, 1 << 30)).isEqualTo(sorted(scores));
    }

    @Test
    void givenScoreBelowTheBase_whenPushed_thenItComesFirst() {
        long[] scores = {1L << 50, 1L << 51, 7};
        LongHeap heap = new LongHeap(1 << 30, record -> scores[record]);
        heap.push(0);
        heap.push(1);
        assertThat(heap.isSaturated()).isTrue();
        heap.rebuild(any -> true);
        heap.push(2);
        assertThat(heap.top()).isEqualTo(2);
    }

    private static List<Integer> popAll(long[] scores, int capacity) {
        LongHeap heap = new LongHeap(capacity, record -> scores[record]);
        for (int record = 0; record < scores.length; record++) {
            while (heap.isFull()) {
                heap.grow(Integer.MAX_VALUE);
            }
            heap.push(record);
        }
        List<Integer> order = new ArrayList<>();
        while (heap.size() > 0) {
            if (heap.isSaturated()) {
                heap.rebuild(any -> true);
            }
            order.add(heap.top());
            heap.pop();
        }
        return order;
    }

    private static List<Integer> sorted(long[] scores) {
        return IntStream.range(0, scores.length)
                .boxed()
                .sorted((a, b) -> scores[a] != scores[b] ? Long.compare(scores[a], scores[b]) : a - b)
                .toList();
    }
}
