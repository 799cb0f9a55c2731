package io.kvcache.bench.cluster;

import io.kvcache.bench.figure.RunnableBuild;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A cluster of server processes on this host.
///
/// **Ownership.** Kills the servers, also when this JVM is told to end, and deletes the directory that it has made
/// for their logs and disks.
///
/// **Threads.** One starts and ends servers; any may ask.
final class LocalCluster implements AutoCloseable {

    private static final Duration POLL = Duration.ofMillis(20);
    private static final String LOOPBACK = "127.0.0.1:";

    private final Settings settings;
    private final Path folder;
    private final RunnableBuild build;
    private final List<ServerNode> nodes = new ArrayList<>();
    private final String seeds;
    private final NodeStatus.Reader reader = new NodeStatus.Reader();
    private final Thread atExit = new Thread(this::cleanUp);

    /// How its servers are started.
    ///
    /// @param name of the cluster: another one places blocks differently
    /// @param servers that it begins with
    /// @param spare servers that may join later
    /// @param hostBytes memory of each
    /// @param diskBytes disk of each; 0 for none
    /// @param drainDelay how long one that is told to end answers the others
    /// @param clients how they reach the servers
    /// @param replicas which groups of blocks have copies
    /// @param ofLast settings of the last one of those that it begins with, `NAME=VALUE`, which the others have
    ///     not
    public record Settings(
            String name,
            int servers,
            int spare,
            long hostBytes,
            long diskBytes,
            Duration drainDelay,
            ClientTransport clients,
            ReplicaPolicy replicas,
            List<String> ofLast) {}

    private record Ports(int http, int transport, int cluster) {}

    private LocalCluster(Settings settings) throws IOException {
        this.settings = settings;
        folder = Files.createTempDirectory("kvcache-cluster-");
        build = RunnableBuild.shippedServer();
        List<Ports> ports = freePorts(settings.servers + settings.spare);
        seeds = ports.stream()
                .limit(settings.servers)
                .map(each -> LOOPBACK + each.cluster)
                .collect(Collectors.joining(","));
        for (int i = 0; i < ports.size(); i++) {
            nodes.add(node("kv-" + i, ports.get(i), i == settings.servers - 1 ? settings.ofLast : List.of()));
        }
        Runtime.getRuntime().addShutdownHook(atExit);
    }

    /// Starts all servers but the spare ones, and returns when they have one view.
    ///
    /// @throws IOException when they have none in time
    public static LocalCluster start(Settings settings, Duration limit) throws IOException, InterruptedException {
        LocalCluster cluster = new LocalCluster(settings);
        try {
            for (ServerNode node : cluster.nodes.subList(0, settings.servers)) {
                node.start();
            }
            cluster.awaitOneView(limit);
            return cluster;
        } catch (IOException | InterruptedException | RuntimeException failed) {
            cluster.close();
            throw failed;
        }
    }

    /// Returns ports that are free now, each once.
    private static List<Ports> freePorts(int servers) throws IOException {
        List<ServerSocket> sockets = new ArrayList<>();
        try {
            List<Ports> ports = new ArrayList<>();
            for (int i = 0; i < servers; i++) {
                ports.add(new Ports(bind(sockets), bind(sockets), bind(sockets)));
            }
            return ports;
        } finally {
            for (ServerSocket socket : sockets) {
                socket.close();
            }
        }
    }

    private static int bind(List<ServerSocket> sockets) throws IOException {
        ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        sockets.add(socket);
        return socket.getLocalPort();
    }

    private ServerNode node(String name, Ports ports, List<String> more) {
        List<String> command = new ArrayList<>(build.javaCommand());
        command.addAll(1, build.aotFlags());
        command.add(1, "-Duser.home=" + folder); // for the secret of these servers
        command.addAll(List.of(
                build.mainClass(),
                "serve",
                "--port",
                Integer.toString(ports.http),
                "--transport",
                LOOPBACK + ports.transport,
                "--host-bytes",
                Long.toString(settings.hostBytes)));
        set(command, "cluster.name", settings.name);
        set(command, "cluster.node", name);
        set(command, "cluster.listen", LOOPBACK + ports.cluster);
        set(command, "cluster.seeds", seeds);
        set(command, "cluster.failure_after", "3s");
        set(command, "cluster.replicas", settings.replicas.name().toLowerCase(Locale.ROOT));
        set(command, "shutdown.delay", settings.drainDelay.toMillis() + "ms");
        set(command, "transport.shared_memory", settings.clients.sharedMemory());
        String aeron = settings.clients.aeron(LOOPBACK + ports.transport);
        if (!aeron.isEmpty()) {
            set(command, "transport.aeron", aeron);
        }
        if (settings.diskBytes > 0) {
            command.addAll(List.of("--disk", folder.resolve(name) + ":" + settings.diskBytes));
        }
        more.forEach(setting -> command.addAll(List.of("--set", setting)));
        return new ServerNode(name, ports.http, LOOPBACK + ports.transport, command, folder.resolve(name + ".log"));
    }

    private static void set(List<String> command, String setting, String value) {
        command.addAll(List.of("--set", setting + "=" + value));
    }

    /// Returns a server, the spare ones behind the others.
    ServerNode node(int index) {
        return nodes.get(index);
    }

    /// Returns the addresses of the transports of those that it began with.
    public List<String> addresses() {
        return nodes.subList(0, settings.servers).stream()
                .map(ServerNode::address)
                .toList();
    }

    /// Waits until the first server has compared its settings with those of the last one that it began with.
    ///
    /// @return the names of those that differ
    /// @throws IOException when it takes too long
    List<String> awaitDifferences(Duration limit) throws IOException, InterruptedException {
        String last = node(settings.servers - 1).name();
        long start = System.nanoTime();
        while (System.nanoTime() - start < limit.toNanos()) {
            NodeStatus status = reader.read(node(0).httpPort());
            List<String> differences =
                    status == null ? null : status.differences().get(last);
            if (differences != null) {
                return differences;
            }
            Thread.sleep(POLL);
        }
        throw new IOException("%s has not compared its settings with those of %s in %s s"
                .formatted(node(0).name(), last, limit.toSeconds()));
    }

    /// Returns the number of servers that it began with.
    int servers() {
        return settings.servers;
    }

    /// Returns the names of the servers that run now.
    public List<String> running() {
        return nodes.stream()
                .filter(ServerNode::isRunning)
                .map(ServerNode::name)
                .toList();
    }

    /// Waits until all servers that run tell the same view, in which all of them and no others serve.
    ///
    /// @return how long that took
    /// @throws IOException when it takes too long
    public Duration awaitOneView(Duration limit) throws IOException, InterruptedException {
        long start = System.nanoTime();
        while (!haveOneView()) {
            if (System.nanoTime() - start > limit.toNanos()) {
                throw new IOException("no common view after " + limit.toSeconds() + " s: " + describeViews());
            }
            Thread.sleep(POLL);
        }
        return Duration.ofNanos(System.nanoTime() - start);
    }

    private boolean haveOneView() throws InterruptedException {
        Set<String> digests = new HashSet<>();
        Set<String> expected = new HashSet<>(running());
        for (ServerNode node : nodes) {
            if (node.isRunning()) {
                NodeStatus status = reader.read(node.httpPort());
                if (status == null
                        || !status.states().keySet().equals(expected)
                        || !status.states().values().stream().allMatch(state -> state.equals("serving"))) {
                    return false;
                }
                digests.add(status.digest());
            }
        }
        return digests.size() == 1;
    }

    private String describeViews() throws IOException, InterruptedException {
        StringBuilder text = new StringBuilder();
        for (ServerNode node : nodes) {
            if (node.isRunning()) {
                NodeStatus status = reader.read(node.httpPort());
                text.append('\n').append(node.name()).append(" sees ").append(status);
            }
        }
        for (ServerNode node : nodes) {
            text.append(node.lastLines());
        }
        return text.toString();
    }

    /// Returns the sum of a counter over the servers that run.
    double counter(String name) throws InterruptedException {
        double sum = 0;
        for (ServerNode node : nodes) {
            sum += node.isRunning() ? reader.counter(node.httpPort(), name) : 0;
        }
        return sum;
    }

    @Override
    public void close() {
        try {
            Runtime.getRuntime().removeShutdownHook(atExit);
        } catch (IllegalStateException ending) {
            return; // the hook does it
        }
        cleanUp();
    }

    private void cleanUp() {
        reader.close();
        try {
            for (ServerNode node : nodes) {
                node.kill();
            }
            delete(folder);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        } catch (IOException left) {
            System.getLogger(LocalCluster.class.getName()).log(System.Logger.Level.WARNING, folder + " is left", left);
        }
    }

    private static void delete(Path folder) throws IOException {
        List<Path> files;
        try (Stream<Path> walk = Files.walk(folder)) {
            files = walk.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path file : files) {
            Files.deleteIfExists(file);
        }
    }

    /// What a server tells of its cluster.
    ///
    /// @param digest of its view
    /// @param states of the servers in it, by name
    /// @param differences settings that differ, by the name of the server; those of a server that has told none
    ///     are missing
    private record NodeStatus(String digest, Map<String, String> states, Map<String, List<String>> differences) {

        private static final JsonMapper JSON = JsonMapper.builder().build();
        private static final Duration CONNECT = Duration.ofMillis(500);
        private static final Duration ANSWER = Duration.ofSeconds(1);
        private static final int OK = 200;

        /// Asks servers of this host.
        static final class Reader implements AutoCloseable {

            private final HttpClient client =
                    HttpClient.newBuilder().connectTimeout(CONNECT).build();

            /// Returns what a server tells, or null while it tells nothing.
            @Nullable
            NodeStatus read(int port) throws InterruptedException {
                String page = get(port, "/v1/cluster");
                if (page == null) {
                    return null;
                }
                JsonNode cluster = JSON.readTree(page);
                Map<String, String> states = new TreeMap<>();
                Map<String, List<String>> differences = new TreeMap<>();
                for (JsonNode node : cluster.path("nodes")) {
                    String name = node.path("name").asString();
                    states.put(name, node.path("state").asString());
                    JsonNode differs = node.path("configDiffers");
                    if (differs.isArray()) {
                        differences.put(
                                name,
                                differs.valueStream().map(JsonNode::asString).toList());
                    }
                }
                return new NodeStatus(cluster.path("digest").asString(), states, differences);
            }

            /// Returns the sum of a counter over its labels, or 0 while the server tells nothing.
            double counter(int port, String name) throws InterruptedException {
                String page = get(port, "/metrics");
                return page == null
                        ? 0
                        : page.lines()
                                .filter(line -> line.startsWith(name + " ") || line.startsWith(name + "{"))
                                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                                .sum();
            }

            private @Nullable String get(int port, String path) throws InterruptedException {
                HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .timeout(ANSWER)
                        .build();
                try {
                    var answer = client.send(request, BodyHandlers.ofString());
                    return answer.statusCode() == OK ? answer.body() : null;
                } catch (IOException unanswered) {
                    return null;
                }
            }

            @Override
            public void close() {
                client.shutdownNow();
            }
        }
    }
}
