package io.kvcache.server;

import io.kvcache.cluster.Membership;
import io.kvcache.core.contract.FreePorts;
import io.kvcache.core.contract.Pause;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.transport.cluster.NodeInfo;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Servers `kv-0` and up of one cluster in this process, each with a disk, a listener for clients of Redis Cluster
/// and one for clients that know one server. What one tells, the others hear some milliseconds later.
///
/// **Threads.** One at a time.
final class RedisClusterServers implements AutoCloseable {

    static final int COUNT = 3;

    private static final long NEWS_MILLIS = 5;
    private static final long DEATH_MILLIS = 300;

    private final Path folder;
    private final Network network = new Network();
    private final Map<Integer, CacheServer> running = new TreeMap<>();
    private final List<Integer> ports = FreePorts.take(COUNT);

    /// @param folder of the disks
    RedisClusterServers(Path folder) {
        this.folder = folder;
    }

    /// Of all servers, also of those that do not run.
    List<Integer> ports() {
        return ports;
    }

    /// The port of a server's listener for clients that know one server: Redis, LMCache and HTTP.
    int anyPort(int number) {
        return server(number).addresses().get(1).getPort();
    }

    /// Starts a server, which finds its disk again.
    void start(int number) throws IOException, ConfigException {
        running.put(
                number,
                CacheServer.start(config(number), cluster -> new ClusterMember(cluster, network.member(), null)));
    }

    private ServerConfig config(int number) throws ConfigException {
        String yaml = """
                listeners: [{ name: data, port: %d, protocols: [resp-cluster] }, { name: any, port: 0 }]
                memory: { host_bytes: 64MiB }
                disks: [{ directory: %s, bytes: 256MiB }]
                transport: { listen: 127.0.0.1:0 }
                cluster: { name: test, node: kv-%d, listen: 127.0.0.1:%d }
                """.formatted(ports.get(number), folder.resolve("disk-" + number), number, number + 1);
        return new ConfigReader(new HostResources(1L << 30, 2), Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of());
    }

    private CacheServer server(int number) {
        return Objects.requireNonNull(running.get(number), () -> "kv-" + number + " does not run");
    }

    /// Has a server give what it has to the others.
    String handOver(int number) {
        return server(number).handOver(Duration.ofSeconds(20));
    }

    /// Stops a server in good order.
    void drain(int number) {
        CacheServer server = server(number);
        server.announceShutdown(Duration.ofMillis(300));
        server.stop(Duration.ofSeconds(10));
        server.close();
        running.remove(number);
    }

    /// Ends a server without a word. The others know a while later.
    void kill(int number) {
        network.cut("kv-" + number);
        server(number).close();
        running.remove(number);
        var _ = CompletableFuture.runAsync(
                () -> network.removeCut("kv-" + number),
                CompletableFuture.delayedExecutor(DEATH_MILLIS, TimeUnit.MILLISECONDS));
    }

    /// Writes all values of a server to its disk.
    void flush(int number) {
        if (!server(number).flushToDisk(Duration.ofSeconds(30))) {
            throw new IllegalStateException("kv-" + number + " has not written all");
        }
    }

    /// Waits until a server knows what is on its disk.
    void awaitRecovered(int number) {
        while (server(number).cache().isRecovering()) {
            Pause.briefly();
        }
    }

    /// Values of each server that runs.
    List<Integer> keyCounts() {
        return running.values().stream()
                .map(server -> server.cache().stats().records().live())
                .toList();
    }

    @Override
    public void close() {
        running.values().forEach(CacheServer::close);
        running.clear();
    }

    /// Knows all members.
    ///
    /// **Threads.** Any.
    private static final class Network {

        private final Map<String, NodeInfo> members = new LinkedHashMap<>();
        private final Map<String, Member> listeners = new LinkedHashMap<>();
        private final List<String> cut = new ArrayList<>();

        Membership member() {
            return new Member(this);
        }

        synchronized void set(Member member, NodeInfo info) {
            members.put(info.name(), info);
            listeners.put(info.name(), member);
            cut.remove(info.name());
            tell(info.name());
        }

        /// What a member tells from now on is not heard.
        synchronized void cut(String name) {
            cut.add(name);
        }

        synchronized void leave(String name) {
            if (!cut.contains(name)) {
                remove(name);
            }
        }

        /// Lets a member go that was cut, unless it is back.
        synchronized void removeCut(String name) {
            if (cut.contains(name)) {
                remove(name);
            }
        }

        private void remove(String name) {
            listeners.remove(name);
            if (members.remove(name) != null) {
                tell(name);
            }
        }

        private void tell(String source) {
            List<NodeInfo> now = List.copyOf(members.values());
            listeners.forEach((name, member) -> member.tell(now, name.equals(source) ? 0 : NEWS_MILLIS));
        }
    }

    private static final class Member implements Membership {

        private final Network network;
        private final String secret = UUID.randomUUID().toString();
        private CompletableFuture<Void> told = CompletableFuture.completedFuture(null);
        private @Nullable Listener listener;
        private String name = "";

        Member(Network network) {
            this.network = network;
        }

        @Override
        public void start(NodeInfo self, Listener listener) {
            name = self.name();
            this.listener = listener;
            update(self);
        }

        @Override
        public void update(NodeInfo self) {
            network.set(this, self);
            synchronized (network) {
                told.join();
            }
        }

        /// Under the network's lock.
        void tell(List<NodeInfo> members, long afterMillis) {
            Listener heard = Objects.requireNonNull(listener);
            told = told.thenRunAsync(
                    () -> heard.onMembers(members, false),
                    CompletableFuture.delayedExecutor(afterMillis, TimeUnit.MILLISECONDS));
        }

        @Override
        public String ownSecret() {
            return secret;
        }

        @Override
        public @Nullable String secretOf(String node) {
            synchronized (network) {
                Member member = network.listeners.get(node);
                return member == null ? null : member.secret;
            }
        }

        @Override
        public void broadcast(byte[] message) {
            throw new UnsupportedOperationException("a server broadcasts nothing");
        }

        @Override
        public void close() {
            network.leave(name);
        }
    }
}
