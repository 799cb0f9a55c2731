package io.kvcache.transport.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// A cluster's policy from those of its servers.
final class ReplicaPolicyTest {

    private static ClusterView view(long... features) {
        List<NodeInfo> nodes = new ArrayList<>();
        for (long each : features) {
            nodes.add(new NodeInfo(
                    ClusterNode.named("kv-" + nodes.size()), 1, NodeState.SERVING, "kv:7420", "", "test", each));
        }
        return new ClusterView("test", 1, nodes);
    }

    @ParameterizedTest
    @EnumSource(ReplicaPolicy.class)
    void givenServersOfOnePolicy_whenAsked_thenItIsTheClusters(ReplicaPolicy policy) {
        assertThat(view(policy.features(), policy.features()).replicas()).isEqualTo(policy);
    }

    @ParameterizedTest
    @CsvSource({"REUSED, HEAT, HEAT", "HEAT, REUSED, HEAT", "REUSED, NONE, NONE", "NONE, HEAT, NONE"})
    void givenServersThatDiffer_whenAsked_thenWhatTheyHaveInCommonCounts(
            ReplicaPolicy one, ReplicaPolicy other, ReplicaPolicy common) {
        assertThat(view(one.features(), other.features()).replicas()).isEqualTo(common);
    }

    @Test
    void givenFeaturesOfLaterVersions_whenAsked_thenTheyAreIgnored() {
        assertThat(view(1 | 4, 3 | 8).replicas()).isEqualTo(ReplicaPolicy.HEAT);
        assertThat(view(2).replicas()).as("no policy has the second bit alone").isEqualTo(ReplicaPolicy.NONE);
    }
}
