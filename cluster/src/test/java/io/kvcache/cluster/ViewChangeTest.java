package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.cluster.ViewKeeper.ViewChange;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.Placement;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/// What a change of the view says about itself.
final class ViewChangeTest {

    private static final String CLUSTER = "test-kv";

    private static ClusterView view(long epoch, NodeInfo... nodes) {
        return new ClusterView(CLUSTER, epoch, List.of(nodes));
    }

    private static NodeInfo node(String name) {
        return TestMember.info(name);
    }

    @Test
    void givenAJoin_whenItServes_thenTheLineSaysWhatMoved() {
        ClusterView four = view(1, node("kv-0"), node("kv-1"), node("kv-2"), node("kv-3"));
        ClusterView joining = view(
                2,
                node("kv-0"),
                node("kv-1"),
                node("kv-2"),
                node("kv-3"),
                node("kv-4").withState(NodeState.JOINING));
        ClusterView five = view(3, node("kv-0"), node("kv-1"), node("kv-2"), node("kv-3"), node("kv-4"));

        assertThat(new ViewChange(four, joining, false)).hasToString("view 2: 4 serve, 1 joins (kv-4); came: kv-4");
        assertThat(new ViewChange(joining, five, false))
                .hasToString("view 3: 5 serve; changed: kv-4; moved 20 % of groups");
    }

    @Test
    void givenAServerThatIsGone_whenItHasNotDrained_thenThatIsTrouble() {
        ClusterView both = view(1, node("kv-0"), node("kv-1"));
        ClusterView drains = view(2, node("kv-0"), node("kv-1").withState(NodeState.DRAINING));
        ClusterView one = view(3, node("kv-0"));

        assertThat(new ViewChange(both, one, false).isTrouble()).isTrue();
        assertThat(new ViewChange(both, drains, false).isTrouble()).isFalse();
        assertThat(new ViewChange(drains, one, false).isTrouble()).isFalse();
        assertThat(new ViewChange(one, both, true).isTrouble()).isTrue();
    }

    @Test
    void givenAMerge_whenNodesComeGoAndRestart_thenTheLineNamesThem() {
        ClusterView before = view(1, node("kv-0"), node("kv-1"));
        ClusterView after = view(2, TestMember.info("kv-1", 2), node("kv-2"));

        assertThat(new ViewChange(before, after, true))
                .hasToString(
                        "view 2: 2 serve; came: kv-2; gone: kv-0; restarted: kv-1;"
                                + " two sides of a partition met again, and forget values that may change; moved 67 % of groups");
    }

    @Test
    void givenRandomWeights_whenNodesChange_thenThatShareOfGroupsMoves() {
        SplittableRandom random = new SplittableRandom();
        for (int round = 0; round < 20; round++) {
            ClusterView before = randomView(random);
            ClusterView after = randomView(random);

            double share = new ViewChange(before, after, false).movedShare();

            assertThat(share).as("%s to %s", before, after).isCloseTo(measure(before, after), within(0.02));
        }
    }

    private static ClusterView randomView(SplittableRandom random) {
        List<NodeInfo> nodes = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            if (i == 0 || random.nextBoolean()) {
                ClusterNode node = new ClusterNode("kv-" + i, random.nextInt(1, 5), "", "");
                nodes.add(new NodeInfo(node, 1, NodeState.SERVING, "kv:1", "", "", 0));
            }
        }
        return new ClusterView(CLUSTER, 1, nodes);
    }

    private static double measure(ClusterView before, ClusterView after) {
        int groups = 20_000;
        int moved = 0;
        for (int group = 0; group < groups; group++) {
            BlockKey key = new BlockKey(group * 0x9e3779b97f4a7c15L, group);
            moved += owner(before, key).equals(owner(after, key)) ? 0 : 1;
        }
        return (double) moved / groups;
    }

    private static String owner(ClusterView view, BlockKey key) {
        Placement placement = Objects.requireNonNull(view.placement());
        return placement.nodes().get(placement.owner(key)).name();
    }
}
