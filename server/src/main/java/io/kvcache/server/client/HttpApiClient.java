package io.kvcache.server.client;

import io.kvcache.server.client.ClientConfig.ClientCredentials;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A server as HTTP shows it.
///
/// **Threads.** Any.
public final class HttpApiClient implements AutoCloseable {

    private static final int OK_BELOW = 300;
    private static final int UNAUTHORIZED = 401;

    private final HttpClient client;
    private final ClientConfig clientConfig;
    private final Duration timeout;

    /// Waits [ClientConfig#ANSWER_TIMEOUT] for each reply.
    public HttpApiClient(ClientConfig clientConfig) {
        this(clientConfig, ClientConfig.ANSWER_TIMEOUT);
    }

    /// @param timeout until a connection is made, and until a page is whole, or one that goes on begins
    public HttpApiClient(ClientConfig clientConfig, Duration timeout) {
        this.clientConfig = clientConfig;
        this.timeout = timeout;
        HttpClient.Builder builder =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(timeout);
        SSLContext tls = clientConfig.tls();
        client = (tls == null ? builder : builder.sslContext(tls)).build();
    }

    /// Host and port.
    public String hostAndPort() {
        return clientConfig.hostAndPort();
    }

    /// Reads a page of JSON.
    ///
    /// @throws IOException when there is no server, or it refuses, with its reason
    public JsonNode get(String path) throws IOException {
        return json(request(path).GET().build());
    }

    /// Asks for something to be done.
    ///
    /// @throws IOException when there is no server, or it refuses, with its reason
    public JsonNode post(String path) throws IOException {
        return json(request(path).POST(BodyPublishers.noBody()).build());
    }

    /// Asks for something to be undone.
    ///
    /// @throws IOException when there is no server, or it refuses, with its reason
    public JsonNode delete(String path) throws IOException {
        return json(request(path).DELETE().build());
    }

    private JsonNode json(HttpRequest request) throws IOException {
        byte[] body = send(request, BodyHandlers.ofByteArray(), bytes -> bytes);
        try {
            return JsonMapper.shared().readTree(body);
        } catch (JacksonException other) {
            throw new IOException("the server at " + hostAndPort() + " did not reply with JSON", other);
        }
    }

    /// Opens a page that goes on, to be read line by line.
    ///
    /// @throws IOException when there is no server, or it refuses, with its reason
    public BufferedReader openLines(String path) throws IOException {
        InputStream body = send(request(path).GET().build(), BodyHandlers.ofInputStream(), HttpApiClient::readAll);
        return new BufferedReader(new InputStreamReader(body, StandardCharsets.UTF_8));
    }

    private HttpRequest.Builder request(String path) {
        String scheme = clientConfig.tls() == null ? "http://" : "https://";
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(scheme + hostAndPort() + path))
                .timeout(timeout);
        ClientCredentials clientCredentials = clientConfig.clientCredentials();
        return clientCredentials == null
                ? request
                : request.header("Authorization", clientCredentials.authorizationHeader());
    }

    private static byte[] readAll(InputStream body) {
        try (body) {
            return body.readAllBytes();
        } catch (IOException ended) {
            return new byte[0]; // the status is said all the same
        }
    }

    /// @param handler has the body when it ends: an answer that stops half-way must not be waited for for ever
    /// @param bytes of the body of a refusal
    private <T> T send(HttpRequest request, BodyHandler<T> handler, Function<T, byte[]> bytes) throws IOException {
        HttpResponse<T> reply;
        CompletableFuture<HttpResponse<T>> answer = client.sendAsync(request, handler);
        try {
            reply = answer.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException failed) {
            throw describe(failed.getCause());
        } catch (TimeoutException silent) {
            answer.cancel(true);
            throw new IOException(clientConfig.describeTimeout(timeout), silent);
        } catch (InterruptedException stopped) {
            answer.cancel(true);
            Thread.currentThread().interrupt();
            throw new IOException("stopped", stopped);
        }
        if (reply.statusCode() < OK_BELOW) {
            return reply.body();
        }
        String why = detail(new String(bytes.apply(reply.body()), StandardCharsets.UTF_8));
        throw new HttpStatusException("the server says " + reply.statusCode() + ": " + why
                + (reply.statusCode() == UNAUTHORIZED ? ClientConfig.CREDENTIALS_ADVICE : ""));
    }

    private IOException describe(@Nullable Throwable failed) {
        return switch (failed) {
            case SSLException tls -> new IOException(clientConfig.describeTlsFailure(tls), tls);
            case ConnectException none -> new IOException(clientConfig.describeNoServer(none), none);
            case HttpTimeoutException silent -> new IOException(clientConfig.describeTimeout(timeout), silent);
            case null, default ->
                new IOException(clientConfig.describeNoReply("the connection ended without an HTTP reply"), failed);
        };
    }

    private static String detail(String problem) {
        try {
            JsonNode detail = JsonMapper.shared().readTree(problem).get("detail");
            return detail == null ? problem.strip() : detail.stringValue();
        } catch (JacksonException other) {
            return problem.strip();
        }
    }

    @Override
    public void close() {
        client.shutdownNow();
    }

    /// A server that answers, and refuses. To ask again at once changes nothing.
    public static final class HttpStatusException extends IOException {

        private static final long serialVersionUID = 1;

        HttpStatusException(String message) {
            super(message);
        }
    }
}
