package io.kvcache.core.event;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.store.StoreEvents.EventLog;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class EventLogTest {

    private static final List<EventKind> KINDS = List.of(EventKind.values());
    private static final List<TierKind> TIERS = List.of(TierKind.values());

    private static CacheEvent event(long sequence, SplittableRandom random) {
        return new CacheEvent(
                sequence,
                KINDS.get(random.nextInt(KINDS.size())),
                TIERS.get(random.nextInt(TIERS.size())),
                random.nextInt(1 << 16),
                random.nextLong(),
                random.nextLong(),
                random.nextLong(),
                random.nextLong(),
                random.nextInt(1 << 30),
                random.nextLong(),
                random.nextLong());
    }

    @Test
    void givenRecordedEvents_whenReadAtRandom_thenTheyAreTheModelsLast() {
        SplittableRandom random = new SplittableRandom(11);
        EventLog log = new EventLog(16);
        Deque<CacheEvent> kept = new ArrayDeque<>();
        for (int i = 0; i < 500; i++) {
            CacheEvent event = event(i, random);
            log.record(event);
            kept.add(event);
            if (kept.size() > 16) {
                kept.removeFirst();
            }
            long oldest = Math.max(0, i - 15);
            long asked = random.nextLong(i + 2);
            int max = 1 + random.nextInt(20);
            EventBatch batch = log.since(asked, max);
            List<CacheEvent> expected =
                    kept.stream().filter(e -> e.sequence() >= asked).limit(max).toList();
            assertThat(batch.events()).isEqualTo(expected);
            assertThat(batch.hasGap()).isEqualTo(asked < oldest);
            assertThat(batch.nextSequence()).isEqualTo(Math.max(asked, oldest) + expected.size());
            assertThat(log.nextSequence()).isEqualTo(i + 1);
        }
    }

    @Test
    void givenASequenceOfTheFuture_whenAsked_thenNothingComesAndNothingIsSkipped() {
        EventLog log = new EventLog(4);
        log.record(event(0, new SplittableRandom(1)));
        EventBatch batch = log.since(100, 10);
        assertThat(batch.events()).isEmpty();
        assertThat(batch.hasGap()).isFalse();
        assertThat(batch.nextSequence()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 0, 1, 3, 100, 1 << 25})
    void givenACapacityThatIsNoPowerOfTwoInRange_whenOpened_thenRefusedWithValueAndRange(int capacity) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new EventLog(capacity))
                .withMessageContaining("" + capacity)
                .withMessageContaining("power of two");
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 0, 65_537})
    void givenAMaximumOutOfRange_whenAsked_thenRefusedWithValueAndRange(int max) {
        EventLog log = new EventLog(2);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> log.since(0, max))
                .withMessageContaining("max is " + max)
                .withMessageContaining("1 to 65536");
    }
}
