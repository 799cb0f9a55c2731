package io.kvcache.planner.serving;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Iterator;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// A server that speaks OpenAI's protocol: `POST /v1/completions` with a prompt of token ids, streamed, with
/// its usage at the end.
public final class HttpCompletionServer implements CompletionServer, AutoCloseable {

    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(5);
    private static final Duration ANSWER_TIMEOUT = Duration.ofMinutes(10);
    private static final String EVENT = "data:";
    private static final String END = "[DONE]";
    private static final int OK = 200;
    private static final int MAX_SHOWN_CHARACTERS = 300;

    private final HttpClient client = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(CONNECT_TIMEOUT)
            .build();
    private final URI base;
    private final String model;

    private HttpCompletionServer(URI base) throws IOException, InterruptedException {
        this.base = base;
        try {
            this.model = firstModel();
        } catch (IOException | InterruptedException | RuntimeException failed) {
            client.close();
            throw failed;
        }
    }

    /// Asks a server for its model.
    ///
    /// @param address `http://HOST:PORT`, with `/v1` behind it or without
    /// @throws IllegalArgumentException when it is not an address
    /// @throws IOException when the server does not answer
    public static HttpCompletionServer connect(String address) throws IOException, InterruptedException {
        return new HttpCompletionServer(parse(address));
    }

    /// Returns the address without a path.
    ///
    /// @throws IllegalArgumentException when it is not an address
    public static URI parse(String address) {
        try {
            URI uri = new URI(address);
            String scheme = String.valueOf(uri.getScheme()).toLowerCase(Locale.ROOT);
            String path = String.valueOf(uri.getPath()).replaceAll("/+$", "");
            if ((scheme.equals("http") || scheme.equals("https"))
                    && uri.getHost() != null
                    && (path.isEmpty() || path.equals("/v1"))) {
                return new URI(scheme, uri.getAuthority(), "", null, null);
            }
        } catch (URISyntaxException malformed) {
            throw wrongAddress(address, malformed);
        }
        throw wrongAddress(address, null);
    }

    private static IllegalArgumentException wrongAddress(String address, @Nullable Throwable cause) {
        return new IllegalArgumentException("URL is '" + address + "', must be: http://HOST:PORT", cause);
    }

    private String firstModel() throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(base.resolve("/v1/models"))
                .timeout(ANSWER_TIMEOUT)
                .build();
        HttpResponse<String> response = send(request, BodyHandlers.ofString());
        if (response.statusCode() != OK) {
            throw new IOException(base + " answers GET /v1/models with status " + response.statusCode()
                    + ": is it a server of OpenAI's protocol?");
        }
        String name = json(response.body()).at("/data/0/id").asString("");
        if (name.isEmpty()) {
            throw new IOException(base + " names no model at /v1/models: " + shorten(response.body()));
        }
        return name;
    }

    @Override
    public String address() {
        return base.toString();
    }

    @Override
    public String model() {
        return model;
    }

    @Override
    public Completion complete(int[] prompt, int maxTokens) throws IOException, InterruptedException {
        ObjectNode body = JSON.createObjectNode();
        body.put("model", model);
        body.set("prompt", JSON.valueToTree(prompt));
        body.put("max_tokens", maxTokens).put("temperature", 0).put("stream", true);
        body.putObject("stream_options").put("include_usage", true);
        HttpRequest request = HttpRequest.newBuilder(base.resolve("/v1/completions"))
                .timeout(ANSWER_TIMEOUT)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(body)))
                .build();
        long start = System.nanoTime();
        HttpResponse<Stream<String>> response = send(request, BodyHandlers.ofLines());
        try (Stream<String> lines = response.body()) {
            if (response.statusCode() != OK) {
                throw failure(response.statusCode(), lines.collect(Collectors.joining("\n")));
            }
            return read(lines.iterator(), start);
        }
    }

    private Completion read(Iterator<String> lines, long start) throws IOException {
        double firstToken = -1;
        JsonNode usage = JSON.missingNode();
        while (lines.hasNext()) {
            String line = lines.next();
            if (!line.startsWith(EVENT) || line.endsWith(END)) {
                continue;
            }
            if (firstToken < 0) {
                firstToken = secondsSince(start);
            }
            JsonNode event = json(line.substring(EVENT.length()));
            if (event.has("error")) {
                throw new IOException(base + " broke the answer off: "
                        + shorten(event.get("error").toString()));
            }
            usage = event.hasNonNull("usage") ? event.get("usage") : usage;
        }
        if (firstToken < 0 || !usage.path("prompt_tokens").isInt()) {
            throw new IOException(base + " sent an answer without its usage: it has to know stream_options");
        }
        return new Completion(
                firstToken,
                secondsSince(start),
                usage.path("prompt_tokens").intValue(),
                usage.path("prompt_tokens_details").path("cached_tokens").asInt(0),
                usage.path("completion_tokens").asInt(0));
    }

    private <T> HttpResponse<T> send(HttpRequest request, HttpResponse.BodyHandler<T> handler)
            throws IOException, InterruptedException {
        try {
            return client.send(request, handler);
        } catch (IOException failed) {
            String reason = failed instanceof ConnectException ? "no connection" : failed.toString();
            throw new IOException(base + " does not answer: " + reason, failed);
        }
    }

    private JsonNode json(String text) throws IOException {
        try {
            return JSON.readTree(text);
        } catch (JacksonException malformed) {
            throw new IOException(base + " sent something other than JSON: " + shorten(text), malformed);
        }
    }

    private IOException failure(int status, String body) {
        return new IOException(base + " answers with status " + status + ": " + shorten(errorMessage(body)));
    }

    /// What a body of the protocol says of an error; another body as it is.
    private static String errorMessage(String body) {
        try {
            return JSON.readTree(body).at("/error/message").asString(body);
        } catch (JacksonException other) {
            return body;
        }
    }

    private static String shorten(String given) {
        String text = given.replaceAll("\\s+", " ");
        return text.length() <= MAX_SHOWN_CHARACTERS ? text : text.substring(0, MAX_SHOWN_CHARACTERS) + "…";
    }

    private static double secondsSince(long start) {
        return (System.nanoTime() - start) / 1e9;
    }

    @Override
    public void close() {
        client.close();
    }
}
