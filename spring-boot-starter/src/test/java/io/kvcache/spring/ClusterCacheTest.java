package io.kvcache.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.contract.FreePorts;
import io.kvcache.junit.KvCacheServerExtension;
import io.kvcache.spring.actuate.KvCacheHealthAutoConfiguration;
import io.kvcache.spring.actuate.KvCacheHealthIndicator;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/// With two servers that find each other over loopback. The last test stops them, as their ports in the cluster
/// cannot be taken again at once.
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
final class ClusterCacheTest {

    private static final List<Integer> PORTS = List.of(FreePorts.take(), FreePorts.take());

    @RegisterExtension
    static final KvCacheServerExtension FIRST = server(0);

    @RegisterExtension
    static final KvCacheServerExtension SECOND = server(1);

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(KvCacheAutoConfiguration.class, KvCacheHealthAutoConfiguration.class))
            .withPropertyValues("kvcache.memory-bytes=16MB");

    private static KvCacheServerExtension server(int node) {
        return KvCacheServerExtension.builder()
                .clearBeforeEach(false)
                .setting("cluster.name", "test")
                .setting("cluster.node", "kv-" + node)
                .setting("cluster.listen", "127.0.0.1:" + PORTS.get(node))
                .setting("cluster.seeds", "127.0.0.1:" + PORTS.get(0) + ",127.0.0.1:" + PORTS.get(1))
                .setting("cluster.weight", "1")
                .build();
    }

    private static void await(BooleanSupplier condition) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("in time").isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    private static Health health(KvCacheHealthIndicator indicator) {
        return Objects.requireNonNull(indicator.health(true));
    }

    @Test
    @Order(2)
    void givenAServerOfACluster_whenStarted_thenTheBeanUsesAllServersAndOneLostKeepsItUp() {
        String address = FIRST.addresses().transport();
        String other = SECOND.addresses().transport();
        runner.withPropertyValues("kvcache.addresses=" + address).run(context -> {
            ClusteredKvCache cache = context.getBean(ClusteredKvCache.class);
            KvCacheHealthIndicator indicator = context.getBean(KvCacheHealthIndicator.class);
            await(() -> cache.connectedServers().size() == 2);
            assertThat(TestBlocks.put(cache)).isEqualTo(4);
            assertThat(TestBlocks.found(cache)).isEqualTo(4);
            Health up = health(indicator);
            assertThat(up.getStatus()).isEqualTo(Status.UP);
            assertThat(up.getDetails())
                    .containsEntry("mode", "cluster")
                    .containsEntry("unreachable", List.of())
                    .containsEntry("blocks", 4);

            SECOND.stop();
            await(() -> !cache.connectedServers().contains(other));
            assertThat(health(indicator).getStatus()).isEqualTo(Status.UP);
            FIRST.stop();
            await(() -> health(indicator).getStatus().equals(Status.DOWN));
        });
    }

    @Test
    @Order(1)
    void givenAServerOfACluster_whenModeIsRemote_thenTheBeanUsesThatServer() {
        runner.withPropertyValues(
                        "kvcache.mode=remote",
                        "kvcache.addresses=" + FIRST.addresses().transport())
                .run(context -> assertThat(context.getBean(KvCache.class)).isInstanceOf(RemoteKvCache.class));
    }
}
