package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.transport.endpoint.Endpoint.ConnectionLimiter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

final class PerAddressCountsTest {

    private static final long SEED = 20_261_122;

    @Test
    void givenNobody_whenAsked_thenNobodyGivesWay() {
        ConnectionLimiter.PerAddressCounts<Integer> perAddressCounts = new ConnectionLimiter.PerAddressCounts<>();
        assertThat(perAddressCounts.oldestOfBusiestAddress()).isNull();
        assertThat(perAddressCounts.remove(1)).isFalse();
        perAddressCounts.add(1, "a");
        assertThat(perAddressCounts.remove(1)).isTrue();
        assertThat(perAddressCounts.oldestOfBusiestAddress()).isNull();
        assertThat(perAddressCounts.size()).isZero();
    }

    @Test
    void givenOneLargeCrowd_whenAsked_thenItsFirstAndNobodyWhoCameAlone() {
        ConnectionLimiter.PerAddressCounts<Integer> perAddressCounts = new ConnectionLimiter.PerAddressCounts<>();
        perAddressCounts.add(1, "alone");
        perAddressCounts.add(2, "many");
        perAddressCounts.add(3, "many");
        assertThat(perAddressCounts.oldestOfBusiestAddress()).isEqualTo(2);
        perAddressCounts.remove(2);
        perAddressCounts.add(4, "many");
        assertThat(perAddressCounts.oldestOfBusiestAddress()).isEqualTo(3);
    }

    /// A slow one that counts all each time has the same numbers, and names one of the same crowd.
    @Test
    void givenAnyComingAndGoing_whenAsked_thenAsCountedOneByOne() {
        SplittableRandom random = new SplittableRandom(SEED);
        ConnectionLimiter.PerAddressCounts<Integer> perAddressCounts = new ConnectionLimiter.PerAddressCounts<>();
        Map<Integer, String> model = new LinkedHashMap<>();
        for (int step = 0; step < 20_000; step++) {
            if (random.nextInt(5) < 3) {
                String place = "p" + random.nextInt(1 + random.nextInt(20));
                perAddressCounts.add(step, place);
                model.put(step, place);
            } else if (!model.isEmpty()) {
                List<Integer> all = new ArrayList<>(model.keySet());
                int who = all.get(random.nextInt(all.size()));
                assertThat(perAddressCounts.remove(who)).isTrue();
                model.remove(who);
            }
            if (model.size() > 60) {
                Integer first = Objects.requireNonNull(perAddressCounts.oldestOfBusiestAddress());
                assertThat(first).as("seed %d, step %d", SEED, step).isIn(firstOfLargest(model));
                perAddressCounts.remove(first);
                model.remove(first);
            }
            assertThat(perAddressCounts.size()).isEqualTo(model.size());
        }
    }

    private static List<Integer> firstOfLargest(Map<Integer, String> model) {
        Map<String, List<Integer>> from = model.entrySet().stream()
                .collect(Collectors.groupingBy(
                        Map.Entry::getValue,
                        LinkedHashMap::new,
                        Collectors.mapping(Map.Entry::getKey, Collectors.toList())));
        int most = from.values().stream().mapToInt(List::size).max().orElse(0);
        return from.values().stream()
                .filter(each -> each.size() == most)
                .map(List::getFirst)
                .toList();
    }
}
