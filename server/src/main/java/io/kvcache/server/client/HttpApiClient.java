package io.kvcache.server.client;

import io.kvcache.server.client.ClientConfig.ClientCredentials;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A server as HTTP shows it.
///
/// **Threads.** Any.
public final class HttpApiClient implements AutoCloseable {

    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(5);

    private static final Duration DEFAULT_RESPONSE_TIMEOUT = Duration.ofSeconds(60);

    private static final int OK_BELOW = 300;
    private static final int UNAUTHORIZED = 401;

    private final HttpClient client;
    private final ClientConfig clientConfig;
    private final Duration responseTimeout;

    public HttpApiClient(ClientConfig clientConfig) {
        this(clientConfig, DEFAULT_RESPONSE_TIMEOUT);
    }

    /// @param responseTimeout until a reply begins; one that goes on may take as long as it does
    public HttpApiClient(ClientConfig clientConfig, Duration responseTimeout) {
        this.clientConfig = clientConfig;
        this.responseTimeout = responseTimeout;
        HttpClient.Builder builder =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT_TIMEOUT);
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
        try (InputStream body = send(request)) {
            return JsonMapper.shared().readTree(body);
        } catch (JacksonException other) {
            throw new IOException("the server at " + hostAndPort() + " did not reply with JSON", other);
        }
    }

    /// Opens a page that goes on, to be read line by line.
    ///
    /// @throws IOException when there is no server, or it refuses, with its reason
    public BufferedReader openLines(String path) throws IOException {
        return new BufferedReader(new InputStreamReader(send(request(path).GET().build()), StandardCharsets.UTF_8));
    }

    private HttpRequest.Builder request(String path) {
        String scheme = clientConfig.tls() == null ? "http://" : "https://";
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(scheme + hostAndPort() + path))
                .timeout(responseTimeout);
        ClientCredentials clientCredentials = clientConfig.clientCredentials();
        return clientCredentials == null
                ? request
                : request.header("Authorization", clientCredentials.authorizationHeader());
    }

    private InputStream send(HttpRequest request) throws IOException {
        HttpResponse<InputStream> reply;
        try {
            reply = client.send(request, BodyHandlers.ofInputStream());
        } catch (SSLException failed) {
            throw new IOException(clientConfig.describeTlsFailure(failed), failed);
        } catch (ConnectException none) {
            throw new IOException(clientConfig.describeNoServer(none), none);
        } catch (HttpConnectTimeoutException silent) {
            boolean isShorter = responseTimeout.compareTo(CONNECT_TIMEOUT) < 0;
            throw new IOException(clientConfig.describeTimeout(isShorter ? responseTimeout : CONNECT_TIMEOUT), silent);
        } catch (HttpTimeoutException silent) {
            throw new IOException(clientConfig.describeTimeout(responseTimeout), silent);
        } catch (IOException ended) {
            throw new IOException(clientConfig.describeNoReply("the connection ended without an HTTP reply"), ended);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new IOException("stopped", stopped);
        }
        if (reply.statusCode() < OK_BELOW) {
            return reply.body();
        }
        String why;
        try (InputStream body = reply.body()) {
            why = detail(new String(body.readAllBytes(), StandardCharsets.UTF_8));
        }
        throw new HttpStatusException("the server says " + reply.statusCode() + ": " + why
                + (reply.statusCode() == UNAUTHORIZED ? ClientConfig.CREDENTIALS_ADVICE : ""));
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
