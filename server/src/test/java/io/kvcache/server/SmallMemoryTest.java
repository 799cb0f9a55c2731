package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.RespClient;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// A server with little memory keeps LMCache's chunks of two values, one large and one small.
final class SmallMemoryTest {

    private static final int METADATA_BYTES = 28;
    private static final int CHUNK_BYTES = 2 << 20;

    /// What the small values and the keys may take: one slab.
    private static final int SMALL_VALUES_MIB = 4;

    private static CacheServer start(int hostMib, String policy) throws Exception {
        ServerConfig config = new ConfigReader(new HostResources(8L << 30, 2), Map.of())
                .read(
                        new ConfigReader.Source(
                                "f",
                                "listen: {port: 0}\nmemory: {host_bytes: %dMiB, policy: %s, prefault: off}\n"
                                        .formatted(hostMib, policy)),
                        Map.of());
        return CacheServer.start(config);
    }

    private static byte[] content(int number, int bytes) {
        byte[] content = new byte[bytes];
        BlockContent.of(0, number).fill(MemorySegment.ofArray(content));
        return content;
    }

    private static boolean has(RespClient client, String key, byte[] expected) throws IOException {
        RespClient.RespReply reply = client.call("GET", key);
        if (reply.isPresent()) {
            assertThat(Arrays.equals(reply.bytes(), expected)).as(key).isTrue();
        }
        return reply.isPresent();
    }

    @ParameterizedTest
    @CsvSource({"32, lru", "48, lru", "64, lru", "96, lru", "48, importance", "64, importance", "96, importance"})
    void givenLittleMemory_whenMoreChunksAreSetThanFit_thenAllThatFitAreRead(int hostMib, String policy)
            throws Exception {
        int fit = (hostMib - SMALL_VALUES_MIB) / 2;
        int written = 3 * fit;
        try (CacheServer server = start(hostMib, policy);
                RespClient client = new RespClient(
                        ClientConfig.open("127.0.0.1", server.address().getPort()))) {
            for (int i = 0; i < written; i++) {
                client.set("chunk" + i + "kv_bytes", content(i, CHUNK_BYTES));
                client.set("chunk" + i + "metadata", content(i, METADATA_BYTES));
            }

            int read = 0;
            int newest = 0;
            for (int i = written - 1; i >= 0; i--) {
                boolean whole = has(client, "chunk" + i + "metadata", content(i, METADATA_BYTES))
                        && has(client, "chunk" + i + "kv_bytes", content(i, CHUNK_BYTES));
                read += whole ? 1 : 0;
                newest += whole && newest == written - 1 - i ? 1 : 0;
            }
            assertThat(read).isBetween(fit, hostMib / 2);
            assertThat(policy.equals("lru") ? newest : fit).isGreaterThanOrEqualTo(fit);
        }
    }
}
