package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Servers that tell each other digests of their settings, in virtual time.
final class SettingsComparisonTest {

    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final SimulatedNetwork network = new SimulatedNetwork(5, Duration.ofSeconds(3));
    private final List<Server> servers = new ArrayList<>();
    private final Logger logger = Logger.getLogger(SettingsComparison.class.getName());
    private final WarningHandler handler = new WarningHandler();

    private static final class WarningHandler extends Handler {

        private final List<String> lines = new ArrayList<>();

        @Override
        public void publish(LogRecord line) {
            lines.add(line.getMessage());
        }

        @Override
        public void flush() {
            // Lines are kept as they come.
        }

        @Override
        public void close() {
            // Nothing is open.
        }

        /// Returns the lines since the last call.
        List<String> take() {
            List<String> taken = List.copyOf(lines);
            lines.clear();
            return taken;
        }
    }

    private final class Server {

        private final SimulatedMembership membership = network.member();
        private final ViewKeeper views = new ViewKeeper("test", membership);
        private final SettingsComparison settings;

        Server(String name, long incarnation, Map<String, Long> digests) {
            settings = new SettingsComparison(views, new TreeMap<>(digests));
            views.start(new NodeInfo(ClusterNode.named(name), incarnation, NodeState.SERVING, name + ":1", "", "", 0));
            servers.add(this);
        }

        void crash() {
            network.crash(membership);
            servers.remove(this);
        }
    }

    @BeforeEach
    void listen() {
        logger.setUseParentHandlers(false);
        logger.addHandler(handler);
    }

    @AfterEach
    void stopListening() {
        logger.removeHandler(handler);
        logger.setUseParentHandlers(true);
    }

    private void pass(Duration time) {
        for (long left = time.toNanos(); left > 0; left -= STEP_NANOS) {
            network.advance(STEP_NANOS);
            servers.forEach(server -> server.settings.step(network.nanos()));
        }
    }

    @Test
    void givenServersWithTheSameSettings_whenTheyMeet_thenNothingDiffers() {
        Server first = new Server("kv-0", 1, Map.of("tenants", 1L, "cluster.handover", 2L));
        new Server("kv-1", 1, Map.of("tenants", 1L, "cluster.handover", 2L));
        assertThat(first.settings.differencesAt("kv-1")).isNull();

        pass(Duration.ofSeconds(20));

        assertThat(first.settings.differencesAt("kv-0")).isEmpty();
        assertThat(first.settings.differencesAt("kv-1")).isEmpty();
        assertThat(first.settings.differencesAt("kv-2")).isNull();
        assertThat(handler.take()).isEmpty();
    }

    @Test
    void givenAServerWithAnotherQuota_whenTheyMeet_thenEachIsWarnedOnce() {
        Server first = new Server("kv-0", 1, Map.of("tenants.alice.quota", 1L, "tenants.alice.weight", 2L));
        Server second = new Server("kv-1", 1, Map.of("tenants.alice.quota", 9L, "tenants.alice.weight", 2L));

        pass(Duration.ofSeconds(60));

        assertThat(first.settings.differencesAt("kv-1")).containsExactly("tenants.alice.quota");
        assertThat(second.settings.differencesAt("kv-0")).containsExactly("tenants.alice.quota");
        assertThat(handler.take())
                .containsExactlyInAnyOrder(
                        "tenants.alice.quota differs at kv-0", "tenants.alice.quota differs at kv-1");
    }

    @Test
    void givenASettingThatOnlyOneServerTells_whenTheyMeet_thenItIsNotCompared() {
        Server first = new Server("kv-0", 1, Map.of("tenants", 1L, "of.a.later.version", 2L));
        new Server("kv-1", 1, Map.of("tenants", 1L));

        pass(Duration.ofSeconds(20));

        assertThat(first.settings.differencesAt("kv-1")).isEmpty();
    }

    @Test
    void givenAServerThatDiffers_whenItIsBackWithTheRightSettings_thenNothingDiffers() {
        Server first = new Server("kv-0", 1, Map.of("tenants", 1L));
        Server second = new Server("kv-1", 1, Map.of("tenants", 9L));
        pass(Duration.ofSeconds(20));
        assertThat(handler.take()).hasSize(2);

        second.crash();
        pass(Duration.ofSeconds(20));
        assertThat(first.settings.differencesAt("kv-1")).isNull();
        new Server("kv-1", 2, Map.of("tenants", 1L));
        pass(Duration.ofSeconds(20));

        assertThat(first.settings.differencesAt("kv-1")).isEmpty();
        assertThat(handler.take()).isEmpty();
    }

    @Test
    void givenAPartition_whenItHeals_thenTheServersCompareAgain() {
        Server first = new Server("kv-0", 1, Map.of("tenants", 1L));
        Server second = new Server("kv-1", 1, Map.of("tenants", 1L));
        pass(Duration.ofSeconds(20));
        network.partition(Set.of(second.membership));
        pass(Duration.ofSeconds(20));
        assertThat(first.settings.differencesAt("kv-1")).isNull();

        network.heal();
        pass(Duration.ofSeconds(40));

        assertThat(first.settings.differencesAt("kv-1")).isEmpty();
    }

    @Test
    void givenMessagesThatAreLost_whenServersMeet_thenTheyAreToldAgain() {
        Server first = new Server("kv-0", 1, Map.of("tenants", 1L));
        Server second = new Server("kv-1", 1, Map.of("tenants", 9L));
        pass(Duration.ofSeconds(1));
        network.loseMessages(1);
        Server third = new Server("kv-2", 1, Map.of("tenants", 1L));
        pass(Duration.ofSeconds(5));
        network.loseMessages(0);

        pass(Duration.ofSeconds(60));

        assertThat(first.settings.differencesAt("kv-2")).isEmpty();
        assertThat(second.settings.differencesAt("kv-2")).containsExactly("tenants");
        assertThat(third.settings.differencesAt("kv-1")).containsExactly("tenants");
    }

    @Test
    void givenMessagesThatCannotBeRead_whenTheyArrive_thenTheyAreCountedAndLoggedOnce() {
        Server first = new Server("kv-0", 1, Map.of("tenants", 1L));
        Server second = new Server("kv-1", 1, Map.of());
        network.advance(STEP_NANOS * 100);
        Logger views = Logger.getLogger(ViewKeeper.class.getName());
        handler.take();
        views.addHandler(handler);
        try {
            for (byte[] each : List.of(new byte[] {2, 0, 0}, new byte[0], new byte[] {1})) {
                second.views.broadcast(each);
            }
            network.advance(STEP_NANOS * 100);
        } finally {
            views.removeHandler(handler);
        }

        assertThat(first.settings.differencesAt("kv-1")).isNull();
        assertThat(first.views.unreadableMessages()).isEqualTo(3);
        assertThat(handler.take())
                .singleElement()
                .asString()
                .startsWith("kv-1 sends a message of 3 bytes that cannot be read");
    }
}
