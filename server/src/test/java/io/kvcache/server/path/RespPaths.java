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
            memory: { host_bytes: 64MiB, prefault: off, staging: 0 }
            network: { transport: nio, loops: 1 }
            transport: { listen: off }
            """;
    private static final int WARM_UP = 3;
    private static final String LOOP = "kvcache-loop";
    private static final byte[] SET = frame("*3", "$3", "SET", "$3", "key", "$5", "value");
    private static final byte[] GET = frame("*2", "$3", "GET", "$3", "key");

    @Override
    public Map<String, List<String>> get() {
        try (CacheServer server = start();
                Socket client = new Socket(
                        server.address().getAddress(), server.address().getPort())) {
            for (int i = 0; i < WARM_UP; i++) {
                ask(client, SET, "+OK\r\n");
                ask(client, GET, "$5\r\nvalue\r\n");
            }
            PathRecorder.start(LOOP);
            ask(client, SET, "+OK\r\n");
            List<String> set = PathRecorder.stop();
            PathRecorder.start(LOOP);
            ask(client, GET, "$5\r\nvalue\r\n");
            return Map.of("RESP SET", set, "RESP GET", PathRecorder.stop());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
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
