package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.store.RecordLookup.AccessBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

final class AccessBufferTest {

    private final AccessBuffer buffer = new AccessBuffer();

    private List<Long> drained() {
        List<Long> handles = new ArrayList<>();
        buffer.drain(handles::add);
        return handles;
    }

    @Test
    void givenFewUsesOfLongPrompts_whenNoted_thenTheRingIsToBeDrainedBeforeItIsHalfFull() {
        assertThat(buffer.offer(1, 8000)).isFalse();
        assertThat(buffer.offer(2, 8000)).isFalse();
        assertThat(buffer.offer(3, 8000)).isTrue();
        assertThat(drained()).containsExactly(1L, 2L, 3L);
        assertThat(buffer.offer(4, 8000)).isFalse();
        assertThat(buffer.offer(5, 16_000)).isTrue();
    }

    @Test
    void givenUsesOfOneThread_whenDrained_thenAllInOrderAndOnce() {
        List<Long> used = LongStream.range(0, 100).boxed().toList();
        used.forEach(each -> buffer.offer(each, 1));
        assertThat(drained()).isEqualTo(used);
        assertThat(drained()).isEmpty();
        assertThat(buffer.dropped()).isZero();
    }

    @Test
    void givenARingThatFills_whenOffered_thenItSaysSoAndCountsWhatItLoses() {
        int quiet = 0;
        while (!buffer.offer(quiet, 1)) {
            quiet++;
        }
        assertThat(quiet).as("half of the ring").isEqualTo(129);
        for (int i = quiet + 1; i < 300; i++) {
            assertThat(buffer.offer(i, 1)).isTrue();
        }
        assertThat(buffer.dropped()).isEqualTo(300 - 256);
        assertThat(drained()).hasSize(256).startsWith(0L, 1L).endsWith(255L);
        buffer.offer(7, 1);
        assertThat(drained()).containsExactly(7L);
    }

    @Test
    void givenAConsumerThatFails_whenDrainedAgain_thenTheRestComes() {
        for (long i = 0; i < 10; i++) {
            buffer.offer(i, 1);
        }
        assertThatThrownBy(() -> buffer.drain(handle -> {
                    if (handle == 3) {
                        throw new IllegalStateException("no");
                    }
                }))
                .hasMessage("no");
        assertThat(drained()).containsExactly(4L, 5L, 6L, 7L, 8L, 9L);
    }

    @Test
    void givenManyRounds_whenTheRingWraps_thenNothingIsLostOrSeenTwice() {
        for (long round = 0; round < 1000; round++) {
            for (long i = 0; i < 200; i++) {
                buffer.offer(round * 200 + i, 1);
            }
            assertThat(drained()).hasSize(200).startsWith(round * 200).endsWith(round * 200 + 199);
        }
    }

    @Test
    void givenManyThreads_whenDrainedMeanwhile_thenEachUseComesOnceOrIsCountedLost() throws Exception {
        int threads = 4;
        int each = 200_000;
        AtomicLong seen = new AtomicLong();
        AtomicLong sum = new AtomicLong();
        try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
            List<Future<?>> offering = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                offering.add(pool.submit(() -> {
                    for (int i = 0; i < each; i++) {
                        buffer.offer(1, 1);
                    }
                }));
            }
            while (offering.stream().anyMatch(future -> !future.isDone())) {
                drainInto(seen, sum);
            }
            for (Future<?> future : offering) {
                future.get();
            }
        }
        drainInto(seen, sum);
        assertThat(seen.get() + buffer.dropped()).isEqualTo((long) threads * each);
        assertThat(sum.get()).as("every handle is what was offered").isEqualTo(seen.get());
    }

    private void drainInto(AtomicLong seen, AtomicLong sum) {
        buffer.drain(handle -> {
            seen.incrementAndGet();
            sum.addAndGet(handle);
        });
    }
}
