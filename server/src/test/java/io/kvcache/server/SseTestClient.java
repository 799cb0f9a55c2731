package io.kvcache.server;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Reads a stream of server-sent events as the standard says.
final class SseTestClient implements AutoCloseable {

    private final BufferedReader lines;

    SseTestClient(HttpTestClient httpTestClient, HttpRequest.Builder request) throws IOException, InterruptedException {
        HttpResponse<java.io.InputStream> reply =
                httpTestClient.client().send(request.build(), BodyHandlers.ofInputStream());
        String type = reply.headers().firstValue("content-type").orElse("");
        if (reply.statusCode() != 200 || !type.equals("text/event-stream")) {
            throw new IOException(reply.statusCode() + " " + type);
        }
        lines = new BufferedReader(new InputStreamReader(reply.body(), StandardCharsets.UTF_8));
    }

    /// @param id of the event
    /// @param name of its kind
    record Event(String id, String name, JsonNode data) {}

    /// The next event, or null at the end.
    @Nullable
    Event next() throws IOException {
        Map<String, String> fields = new HashMap<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.isEmpty() && fields.containsKey("data")) {
                return new Event(
                        fields.getOrDefault("id", ""),
                        fields.getOrDefault("event", ""),
                        JsonMapper.shared().readTree(fields.get("data")));
            }
            if (line.isEmpty()) {
                fields.clear();
            } else if (!line.startsWith(":")) {
                int colon = line.indexOf(": ");
                fields.put(line.substring(0, colon), line.substring(colon + 2));
            }
        }
        return null;
    }

    @Override
    public void close() throws IOException {
        lines.close();
    }
}
