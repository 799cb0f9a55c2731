package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class AnnouncedRequestsTest {

    private static final long MAX_AGE = 1 << 20;

    private final AnnouncedRequests requests = new AnnouncedRequests();

    @ParameterizedTest
    @ValueSource(longs = {100, (1L << 32) - 500, 1L << 40})
    void givenRequestsForABlock_whenTheyComeInTurn_thenEachNextIsWhereItWasAnnounced(long start) {
        List<Long> announced = List.of(start, start + 4000, start + 4001, start + 4800, start + 20_000, start + 90_000);
        announced.forEach(time -> requests.add(7, time, MAX_AGE));
        long now = start + 90_400;
        for (int next = 1; next < announced.size(); next++) {
            assertThat(requests.nextAfterUse(7, now, MAX_AGE)).isEqualTo(announced.get(next));
            assertThat(requests.fulfil(7, now++, MAX_AGE)).isEqualTo(announced.get(next));
        }
        assertThat(requests.nextAfterUse(7, now, MAX_AGE)).isEqualTo(AnnouncedRequests.NONE);
        assertThat(requests.fulfil(7, now, MAX_AGE)).isEqualTo(AnnouncedRequests.NONE);
        assertThat(requests.fulfil(7, now, MAX_AGE)).isEqualTo(AnnouncedRequests.NONE);
    }

    /// A queue of requests moves on: each that is served is replaced by one that is announced.
    @ParameterizedTest
    @ValueSource(ints = {4, 16, 200})
    void givenAQueue_whenItMovesOn_thenEachNextIsWhereItWasAnnounced(int length) {
        Random random = new Random(length);
        Map<Long, Deque<Long>> model = new HashMap<>();
        Deque<List<Long>> queue = new ArrayDeque<>();
        long now = 1000;
        for (int served = 0; served < 3000; served++) {
            while (queue.size() < length) {
                List<Long> blocks = new ArrayList<>();
                for (int i = 0; i < 6; i++) {
                    blocks.add((long) (random.nextInt(4) == 0 ? random.nextInt(5) : 5 + random.nextInt(400)));
                }
                List<Long> distinct = blocks.stream().distinct().toList();
                for (long block : distinct) {
                    requests.add(block, now, MAX_AGE);
                    model.computeIfAbsent(block, any -> new ArrayDeque<>()).add(now);
                }
                queue.add(distinct);
                now += 40;
            }
            for (long block : queue.remove()) {
                Deque<Long> times = model.getOrDefault(block, new ArrayDeque<>());
                times.remove();
                assertThat(requests.fulfil(block, ++now, MAX_AGE))
                        .isEqualTo(times.isEmpty() ? AnnouncedRequests.NONE : times.element());
            }
        }
    }

    @Test
    void givenAnAnnouncementThatDoesNotComeTrue_whenItIsTooOld_thenItIsForgotten() {
        requests.add(3, 1000, MAX_AGE);
        assertThat(requests.fulfil(3, 1000 + 2 * MAX_AGE, MAX_AGE)).isEqualTo(AnnouncedRequests.NONE);
        requests.add(4, 1000, MAX_AGE);
        requests.add(4, 2000, MAX_AGE);
        assertThat(requests.nextAfterUse(4, 1000 + 2 * MAX_AGE, MAX_AGE)).isEqualTo(AnnouncedRequests.NONE);
    }

    @Test
    void givenMoreAnnouncementsThanAreKept_whenTheyComeTrue_thenTheFirstAreKnownAndPlacesAreUsedAgain() {
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < AnnouncedRequests.MAX_TIMES + 10; i++) {
                requests.add(i % 64, i, 2L * AnnouncedRequests.MAX_TIMES);
            }
            long kept = 0;
            for (int block = 0; block < 64; block++) {
                long next = requests.nextAfterUse(block, AnnouncedRequests.MAX_TIMES, 2L * AnnouncedRequests.MAX_TIMES);
                assertThat(next).isEqualTo(block + 64);
                do {
                    kept++;
                    next = requests.fulfil(block, AnnouncedRequests.MAX_TIMES, 2L * AnnouncedRequests.MAX_TIMES);
                } while (next != AnnouncedRequests.NONE);
            }
            assertThat(kept).isEqualTo(AnnouncedRequests.MAX_TIMES - 1);
        }
    }

    @Test
    void givenMoreBlocksThanThereAreSetsFor_whenAnnounced_thenPlacesOfThoseThatHadToGoAreUsedAgain() {
        int blocks = 1 << 20;
        for (int round = 0; round < 4; round++) {
            for (int block = 0; block < blocks; block++) {
                requests.add(block, (long) round * blocks + block, MAX_AGE);
            }
        }
        int last = blocks - 1;
        requests.add(last, 4L * blocks, MAX_AGE);
        assertThat(requests.nextAfterUse(last, 4L * blocks, MAX_AGE)).isEqualTo(4L * blocks);
        assertThat(requests.bytes()).isLessThan(9 << 20);
    }
}
