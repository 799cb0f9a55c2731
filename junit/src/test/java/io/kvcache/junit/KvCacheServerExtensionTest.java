package io.kvcache.junit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.Socket;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import redis.clients.jedis.RedisClient;

final class KvCacheServerExtensionTest {

    private static final Namespace SPACE = Namespace.of("model", BlockShape.kv(1, 1, 8, 16, Dtype.BF16));
    private static final BlockChain CHAIN =
            BlockChain.of(SPACE, IntStream.range(0, 64).toArray());

    @RegisterExtension
    static final KvCacheServerExtension SERVER =
            KvCacheServerExtension.builder().setting("memory.policy", "lru").build();

    @Test
    void givenAServer_whenJedisWritesAndReads_thenTheValueIsThere(ServerAddresses server) {
        try (RedisClient redis = RedisClient.create(server.redis())) {
            assertThat(redis.set("key", "value")).isEqualTo("OK");
            assertThat(redis.get("key")).isEqualTo("value");
        }
    }

    @Test
    void givenAServer_whenBlocksArePut_thenTheyAreFound(KvCache cache) {
        assertThat(putBlocks(cache)).isEqualTo(CHAIN.length());
        try (BlockTable table = cache.acquire(CHAIN)) {
            assertThat(table.readyBlocks()).isEqualTo(CHAIN.length());
            assertThat(table.segment(0).get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 7);
        }
    }

    @Test
    void givenAServer_whenAskedOverHttp_thenItIsReady() throws Exception {
        HttpRequest request = HttpRequest.newBuilder(SERVER.addresses().http().resolve("/health/ready"))
                .build();
        try (HttpClient http = HttpClient.newHttpClient()) {
            assertThat(http.send(request, BodyHandlers.ofString()).statusCode()).isEqualTo(200);
        }
    }

    @Test
    void givenValuesAndBlocks_whenCleared_thenNothingIsLeft() {
        KvCache cache = SERVER.cache();
        putBlocks(cache);
        try (RedisClient redis = RedisClient.create(SERVER.addresses().redis())) {
            redis.set("key", "value");
            SERVER.clear();
            assertThat(redis.get("key")).isNull();
            assertThat(redis.dbSize()).isZero();
            assertThat(cache.match(CHAIN).blocks()).isZero();
            assertThat(redis.set("key", "again")).isEqualTo("OK");
            assertThat(redis.get("key")).isEqualTo("again");
        }
        assertThat(putBlocks(cache)).isEqualTo(CHAIN.length());
    }

    @Test
    void givenAStoppedServer_whenStartedAgain_thenItListensAtTheSamePortsAndIsEmpty() throws Exception {
        ServerAddresses before = SERVER.addresses();
        try (RedisClient redis = RedisClient.create(before.redis())) {
            redis.set("key", "value");
        }
        SERVER.stop();
        assertThatThrownBy(() -> new Socket(before.host(), before.port()).close())
                .isInstanceOf(IOException.class);

        SERVER.start();
        assertThat(SERVER.addresses()).isEqualTo(before);
        try (RedisClient redis = RedisClient.create(before.redis())) {
            assertThat(redis.get("key")).isNull();
        }
        try (RemoteKvCache cache = RemoteKvCache.connect(before.transport())) {
            assertThat(cache.isConnected()).isTrue();
        }
    }

    private static int putBlocks(KvCache cache) {
        cache.register(SPACE);
        byte[] block = new byte[(int) SPACE.blockBytes()];
        Arrays.fill(block, (byte) 7);
        List<MemorySegment> blocks = IntStream.range(0, CHAIN.length())
                .mapToObj(_ -> MemorySegment.ofArray(block))
                .toList();
        return cache.putAll(CHAIN, 0, blocks, KvCache.NO_WAIT).accepted();
    }
}
