package io.kvcache.bench.cluster;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// What a server tells of its cluster.
///
/// @param digest of its view
/// @param states of the servers in it, by name
/// @param differences settings that differ, by the name of the server; those of a server that has told none are missing
record NodeStatus(String digest, Map<String, String> states, Map<String, List<String>> differences) {

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
                            name, differs.valueStream().map(JsonNode::asString).toList());
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
