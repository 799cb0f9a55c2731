package io.kvcache.transport.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Which views show servers that owned something unseen.
final class ClusterViewTest {

    private static final ClusterView ALONE =
            new ClusterView("test", 0, List.of()).next(1, List.of(node("kv-0", NodeState.JOINING, 1)), false);

    private static NodeInfo node(String name, NodeState state, long incarnation) {
        return new NodeInfo(ClusterNode.named(name), incarnation, state, name + ":1", "", "test", 0);
    }

    private static ClusterView next(ClusterView view, boolean merged, NodeInfo... others) {
        List<NodeInfo> nodes = new ArrayList<>(List.of(others));
        nodes.add(node("kv-0", NodeState.SERVING, 1));
        return view.next(view.epoch() + 1, nodes, merged);
    }

    @Test
    void givenServersThatJoinAndDrain_whenSeen_thenNoServerIsMet() {
        ClusterView joining = next(ALONE, false, node("kv-1", NodeState.JOINING, 1));
        ClusterView serving = next(joining, false, node("kv-1", NodeState.SERVING, 1));
        ClusterView draining = next(serving, false, node("kv-1", NodeState.DRAINING, 1));
        ClusterView restarted = next(next(draining, false), false, node("kv-1", NodeState.JOINING, 2));

        assertThat(next(restarted, false, node("kv-1", NodeState.SERVING, 2)).meetings())
                .isZero();
    }

    @Test
    void givenTwoSidesOfAPartition_whenTheyMerge_thenTheyMeetOnce() {
        ClusterView both = next(next(ALONE, false, node("kv-1", NodeState.JOINING, 1)), true);

        assertThat(both.meetings()).isEqualTo(1);
        assertThat(next(both, false).meetings()).isEqualTo(1);
        assertThat(next(both, true).meetings()).isEqualTo(2);
    }

    @Test
    void givenAServerThatWasNotSeenToJoin_whenItOwnsOrDrains_thenItIsMet() {
        assertThat(next(ALONE, false, node("kv-1", NodeState.SERVING, 1)).meetings())
                .isEqualTo(1);
        assertThat(next(ALONE, false, node("kv-1", NodeState.DRAINING, 1)).meetings())
                .isEqualTo(1);
        ClusterView known = next(ALONE, false, node("kv-1", NodeState.JOINING, 1));
        assertThat(next(known, false, node("kv-1", NodeState.SERVING, 2)).meetings())
                .as("another process of the name")
                .isEqualTo(1);
    }

    @Test
    void givenMeetings_whenViewsAreCompared_thenTheyDoNotCount() {
        NodeInfo other = node("kv-1", NodeState.SERVING, 1);

        assertThat(next(ALONE, true, other))
                .isEqualTo(new ClusterView("test", 2, List.of(node("kv-0", NodeState.SERVING, 1), other)));
    }
}
