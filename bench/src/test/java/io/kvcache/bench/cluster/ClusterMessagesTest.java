package io.kvcache.bench.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.cluster.ClusterDemo.GroupChain;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What two server processes tell each other: drops, also those of a time when one was away, and their settings.
@Tag("slow")
@Timeout(300)
final class ClusterMessagesTest {

    private static final Duration LIMIT = Duration.ofSeconds(90);

    private static final LocalCluster.Settings SETTINGS = new LocalCluster.Settings(
            "messages",
            2,
            0,
            64L << 20,
            256L << 20,
            Duration.ZERO,
            ClientTransport.TCP,
            ReplicaPolicy.HEAT,
            List.of("cluster.handover=5m"));

    @Test
    void givenTwoServers_whenOneIsAwayDuringADrop_thenItHearsOfItAndServes() throws Exception {
        GroupChain early = new GroupChain(1);
        GroupChain late = new GroupChain(2);
        GroupChain kept = new GroupChain(3);
        try (LocalCluster cluster = LocalCluster.start(SETTINGS, LIMIT)) {
            ServerNode one = cluster.node(0);
            ServerNode other = cluster.node(1);
            for (ServerNode server : List.of(one, other)) {
                early.put(server);
                late.put(server);
                kept.put(server);
            }
            assertThat(cluster.awaitDifferences(LIMIT)).containsExactly("cluster.handover");

            early.drop(one);
            early.awaitGone(List.of(one, other), LIMIT);
            other.terminate(LIMIT);
            late.drop(one);
            other.start();
            cluster.awaitOneView(LIMIT);

            late.awaitGone(List.of(one, other), LIMIT);
            early.awaitGone(List.of(one, other), LIMIT);
            assertThat(kept.isAt(other)).isTrue();
            assertThat(kept.isAt(one)).isTrue();
            assertThat(cluster.counter("kv_cluster_unreadable_messages_total")).isZero();
        }
    }
}
