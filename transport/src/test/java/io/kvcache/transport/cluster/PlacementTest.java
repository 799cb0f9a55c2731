package io.kvcache.transport.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.identity.BlockKey;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class PlacementTest {

    private static final int KEYS = 1_000_000;
    private static final int FEW_KEYS = 2_000;

    private static BlockKey key(SplittableRandom random) {
        return new BlockKey(random.nextLong(), random.nextLong());
    }

    private static List<ClusterNode> equalNodes(int count) {
        return IntStream.range(0, count)
                .mapToObj(node -> ClusterNode.named("kv-" + node))
                .toList();
    }

    @Test
    void givenWeights_whenAMillionGroupsAreSpread_thenSharesAreWithinThreePercent() {
        double[] weights = {1, 2, 4, 1, 8};
        Placement placement = new Placement(
                "prod",
                IntStream.range(0, weights.length)
                        .mapToObj(node -> new ClusterNode("kv-" + node, weights[node], "", ""))
                        .toList());
        SplittableRandom random = new SplittableRandom(1);
        int[] groups = new int[weights.length];
        for (int i = 0; i < KEYS; i++) {
            groups[placement.owner(key(random))]++;
        }
        for (int node = 0; node < weights.length; node++) {
            double share = weights[node] / 16;
            assertThat((double) groups[node] / KEYS).isCloseTo(share, within(0.03 * share));
        }
    }

    @Tag("slow")
    @ParameterizedTest
    @ValueSource(ints = {1, 4, 16, 64})
    void givenAJoin_whenAMillionGroupsAreRanked_thenHardlyMoreThanItsShareMoveAndOnlyToIt(int count) {
        Placement before = new Placement("prod", equalNodes(count));
        Placement after = new Placement("prod", equalNodes(count + 1));
        SplittableRandom random = new SplittableRandom(2);
        int moved = 0;
        int movedElsewhere = 0;
        for (int i = 0; i < KEYS; i++) {
            BlockKey key = key(random);
            int was = before.owner(key);
            int is = after.owner(key);
            moved += is == was ? 0 : 1;
            movedElsewhere += is == was || is == count ? 0 : 1;
        }
        assertThat(movedElsewhere).isZero();
        assertThat((double) moved / KEYS).isLessThanOrEqualTo(1.05 / (count + 1));
    }

    @Test
    void givenAServerThatJoined_whenItsGroupsAreRanked_thenTheFormerOwnerIsNext() {
        Placement before = new Placement("prod", equalNodes(9));
        Placement after = new Placement("prod", equalNodes(10));
        SplittableRandom random = new SplittableRandom(3);
        for (int i = 0; i < FEW_KEYS; i++) {
            BlockKey key = key(random);
            int[] order = after.order(key);
            assertThat(before.owner(key)).isEqualTo(order[0] == 9 ? order[1] : order[0]);
        }
    }

    @Test
    void givenAnyWeights_whenTheOwnerIsWanted_thenItIsTheFirstOfTheOrder() {
        SplittableRandom random = new SplittableRandom(4);
        Placement placement = new Placement(
                "prod",
                IntStream.range(0, 100)
                        .mapToObj(node -> new ClusterNode("kv-" + node, Math.pow(10, random.nextDouble(-3, 6)), "", ""))
                        .toList());
        for (int i = 0; i < 200; i++) {
            BlockKey key = key(random);
            int[] order = placement.order(key);
            assertThat(IntStream.of(order).sorted()).hasSize(100).doesNotHaveDuplicates();
            assertThat(placement.owner(key)).isEqualTo(order[0]);
            assertThat(placement.owners(key, 1)).containsExactly(order[0]);
            assertThat(placement.owners(key, 200)).as("without zones").isEqualTo(order);
        }
    }

    @Test
    void givenTheSameServers_whenListedInAnotherOrder_thenTheSameNamesAreChosen() {
        List<ClusterNode> nodes = equalNodes(20);
        List<ClusterNode> shuffled = new ArrayList<>(nodes);
        Collections.shuffle(shuffled, new Random(5));
        Placement one = new Placement("prod", nodes);
        Placement other = new Placement("prod", shuffled);
        SplittableRandom random = new SplittableRandom(6);
        for (int i = 0; i < FEW_KEYS; i++) {
            BlockKey key = key(random);
            assertThat(shuffled.get(other.owner(key))).isEqualTo(nodes.get(one.owner(key)));
        }
        HashSlots slots = new HashSlots(one);
        HashSlots otherSlots = new HashSlots(other);
        for (int slot = 0; slot < HashSlots.COUNT; slot++) {
            assertThat(shuffled.get(otherSlots.owner(slot))).isEqualTo(nodes.get(slots.owner(slot)));
        }
    }

    @Test
    void givenZonesAndHosts_whenCopiesArePlaced_thenOtherZonesComeFirstAndThenOtherHosts() {
        List<ClusterNode> nodes = List.of(
                new ClusterNode("kv-0", 1, "a", "h0"),
                new ClusterNode("kv-1", 1, "a", "h0"),
                new ClusterNode("kv-2", 1, "a", "h1"),
                new ClusterNode("kv-3", 1, "b", "h2"),
                new ClusterNode("kv-4", 1, "b", "h2"));
        Placement placement = new Placement("prod", nodes);
        SplittableRandom random = new SplittableRandom(7);
        for (int i = 0; i < FEW_KEYS; i++) {
            BlockKey key = key(random);
            int[] owners = placement.owners(key, 5);
            assertThat(owners[0]).isEqualTo(placement.owner(key));
            assertThat(nodes.get(owners[1]).zone())
                    .isNotEqualTo(nodes.get(owners[0]).zone());
            assertThat(IntStream.of(owners).limit(3).mapToObj(nodes::get).map(ClusterNode::host))
                    .doesNotHaveDuplicates();
            assertThat(IntStream.of(owners).sorted()).containsExactly(0, 1, 2, 3, 4);
        }
    }

    @Test
    void givenBadServers_whenPlaced_thenTheValueAndWhatIsAllowedAreNamed() {
        assertThatThrownBy(() -> new Placement("", List.of()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("nodes = 0 is out of range; allowed: 1 to 4096");
        assertThatThrownBy(() -> new Placement("", List.of(ClusterNode.named("a"), ClusterNode.named("a"))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("two nodes have the name 'a'; names must differ");
        assertThatThrownBy(() -> ClusterNode.named(""))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("name '' has 0 bytes; allowed: 1 to 255 bytes of UTF-8 without NUL");
        assertThatThrownBy(() -> new ClusterNode("a", Double.NaN, "", ""))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("weight = NaN of node a is out of range; allowed: 0.001 to 1,000,000");
        Placement placement = new Placement("", equalNodes(2));
        assertThatThrownBy(() -> placement.owners(new BlockKey(1, 2), 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("copies = 0 is out of range; allowed: 1 and up");
    }
}
