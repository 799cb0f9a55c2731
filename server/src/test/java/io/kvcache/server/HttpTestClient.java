package io.kvcache.server;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// An HTTP client of a server under test.
final class HttpTestClient implements AutoCloseable {

    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final int port;

    HttpTestClient(int port) {
        this.port = port;
    }

    HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
    }

    HttpResponse<byte[]> send(HttpRequest.Builder request) throws IOException, InterruptedException {
        return client.send(request.build(), BodyHandlers.ofByteArray());
    }

    HttpResponse<byte[]> get(String path) throws IOException, InterruptedException {
        return send(request(path));
    }

    HttpResponse<byte[]> put(String path, byte[] body) throws IOException, InterruptedException {
        return send(request(path).PUT(BodyPublishers.ofByteArray(body)));
    }

    HttpResponse<byte[]> put(String path, String json) throws IOException, InterruptedException {
        return send(request(path).PUT(BodyPublishers.ofString(json)));
    }

    HttpResponse<byte[]> post(String path, String json) throws IOException, InterruptedException {
        return send(request(path).POST(BodyPublishers.ofString(json)));
    }

    HttpClient client() {
        return client;
    }

    static JsonNode json(HttpResponse<byte[]> reply) {
        return JsonMapper.shared().readTree(reply.body());
    }

    @Override
    public void close() {
        client.close();
    }
}
