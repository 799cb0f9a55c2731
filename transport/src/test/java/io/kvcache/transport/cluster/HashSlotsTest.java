package io.kvcache.transport.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class HashSlotsTest {

    private static Placement placement(int count) {
        return placement("prod", count);
    }

    private static Placement placement(String cluster, int count) {
        return new Placement(
                cluster,
                IntStream.range(0, count)
                        .mapToObj(node -> ClusterNode.named("kv-" + node))
                        .toList());
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "5, 1.11", "16, 1.11", "64, 1.13"})
    void givenServers_whenSlotsAreAssigned_thenNoneHasMoreThanTheCap(int count, double most) {
        HashSlots slots = new HashSlots(placement(count));
        int[] held = new int[count];
        for (int slot = 0; slot < HashSlots.COUNT; slot++) {
            held[slots.owner(slot)]++;
        }
        assertThat(IntStream.of(held).max().orElseThrow() * (double) count / HashSlots.COUNT)
                .isLessThanOrEqualTo(most);
    }

    /// 1,024 runs are few, so clusters differ: the mean of some is compared.
    @ParameterizedTest
    @CsvSource({"5, 1.2", "16, 1.3", "64, 1.8"})
    void givenJoins_whenSlotsAreAssigned_thenNotMuchMoreThanAShareMoves(int count, double mostShares) {
        int joins = 8;
        long moved = 0;
        for (int join = 0; join < joins; join++) {
            HashSlots before = new HashSlots(placement("prod-" + join, count));
            HashSlots after = new HashSlots(placement("prod-" + join, count + 1));
            moved += IntStream.range(0, HashSlots.COUNT)
                    .filter(slot -> before.owner(slot) != after.owner(slot))
                    .count();
        }
        assertThat((double) moved / joins / HashSlots.COUNT).isLessThanOrEqualTo(mostShares / (count + 1));
    }

    @Test
    void givenMoreServersThanRuns_whenSlotsAreAssigned_thenEachHasOneRunAtMost() {
        HashSlots slots = new HashSlots(placement(1500));
        assertThat(IntStream.range(0, HashSlots.COUNT).map(slots::owner).distinct())
                .hasSize(1024);
    }

    @Test
    void givenASlotOutOfRange_whenItsOwnerIsWanted_thenTheRangeIsNamed() {
        HashSlots slots = new HashSlots(placement(2));
        assertThatThrownBy(() -> slots.owner(16_384))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("slot = 16384 is out of range; allowed: 0 to 16383");
    }
}
