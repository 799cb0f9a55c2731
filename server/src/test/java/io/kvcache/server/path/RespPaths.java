package io.kvcache.server.path;

import io.kvcache.server.CacheServer;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/// Sets a value by RESP and gets it from host memory, as the server's only thread for connections sees it.
public final class RespPaths implements Supplier<Map<String, List<String>>> {

    private static final String CONFIG = """
            listen: { port: 0 }
            memory: { host_bytes: 64MiB, policy: lru, prefault: off, staging: 0 }
            network: { transport: nio, loops: 1 }
            transport: { listen: off }
            """;
    private static final int WARM_UP = 3;
    private static final String LOOP = "kvcache-loop";
    private static final byte[] SET = frame("*3", "$3", "SET", "$3", "key", "$5", "value");
    private static final byte[] GET = frame("*2", "$3", "GET", "$3", "key");

    /// Another key of the same length, so that no digest of the traced key is left from the request before.
    private static final byte[] SET_OTHER = frame("*3", "$3", "SET", "$3", "abc", "$5", "value");

    private static final byte[] GET_OTHER = frame("*2", "$3", "GET", "$3", "abc");
    private static final String SHA_256 = "io.kvcache.core.hash.Sha256";

    @Override
    public Map<String, List<String>> get() {
        try (CacheServer server = start();
                Socket client = new Socket(
                        server.address().getAddress(), server.address().getPort())) {
            for (int i = 0; i < WARM_UP; i++) {
                ask(client, SET, "+OK\r\n");
                ask(client, GET, "$5\r\nvalue\r\n");
                ask(client, SET_OTHER, "+OK\r\n");
                ask(client, GET_OTHER, "$5\r\nvalue\r\n");
            }
            List<String> set = trace(client, SET, "+OK\r\n");
            ask(client, GET_OTHER, "$5\r\nvalue\r\n");
            return Map.of("RESP SET", set, "RESP GET", trace(client, GET, "$5\r\nvalue\r\n"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// @throws IllegalStateException when the request takes more or less than one SHA-256
    private static List<String> trace(Socket client, byte[] request, String expected) throws IOException {
        PathRecorder.start(LOOP);
        ask(client, request, expected);
        List<String> entered = PathRecorder.stop();
        if (PathRecorder.entries(SHA_256) != 1) {
            throw new IllegalStateException(PathRecorder.entries(SHA_256) + " digests were made; a request makes one");
        }
        return entered;
    }

    private static CacheServer start() throws IOException {
        try {
            return CacheServer.start(new ConfigReader(new HostResources(1L << 30, 1), Map.of())
                    .read(new ConfigReader.Source("paths", CONFIG), Map.of()));
        } catch (ConfigException wrong) {
            throw new IllegalStateException(String.join("; ", wrong.problems()), wrong);
        }
    }

    private static void ask(Socket client, byte[] request, String expected) throws IOException {
        client.getOutputStream().write(request);
        byte[] answer = client.getInputStream().readNBytes(expected.length());
        if (!new String(answer, StandardCharsets.US_ASCII).equals(expected)) {
            throw new IllegalStateException("the answer is " + new String(answer, StandardCharsets.US_ASCII));
        }
    }

    private static byte[] frame(String... lines) {
        return (String.join("\r\n", lines) + "\r\n").getBytes(StandardCharsets.US_ASCII);
    }
}
