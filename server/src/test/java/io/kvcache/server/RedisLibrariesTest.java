package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.server.net.NettyTransport.TransportKind;
import io.lettuce.core.KillArgs;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.params.SetParams;

/// The libraries that Java users have, as they come.
final class RedisLibrariesTest {

    private static TestServer server = TestServer.start(TransportKind.AUTO);

    @BeforeAll
    static void start() {
        assertThat(server.port()).isPositive();
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @BeforeEach
    void empty() {
        try (UnifiedJedis jedis = jedis()) {
            jedis.flushDB();
        }
    }

    private static UnifiedJedis jedis() {
        return redis.clients.jedis.RedisClient.builder()
                .hostAndPort("127.0.0.1", server.port())
                .clientConfig(
                        DefaultJedisClientConfig.builder().timeoutMillis(60_000).build())
                .build();
    }

    private static byte[] megabytes(int count) {
        byte[] value = new byte[count << 20];
        new Random(count).nextBytes(value);
        return value;
    }

    @Test
    void givenJedis_whenUsedAsACache_thenItFindsWhatItNeeds() {
        try (UnifiedJedis jedis = jedis()) {
            assertThat(jedis.set("k", "v", SetParams.setParams().ex(10_000))).isEqualTo("OK");
            assertThat(jedis.get("k")).isEqualTo("v");
            assertThat(jedis.ttl("k")).isBetween(9_000L, 10_000L);
            assertThat(jedis.mset("a", "1", "b", "2")).isEqualTo("OK");
            assertThat(jedis.mget("a", "x", "b")).containsExactly("1", null, "2");
            assertThat(jedis.exists("a", "b", "x")).isEqualTo(2);
            assertThat(jedis.dbSize()).isEqualTo(3);
            assertThat(jedis.del("a", "x")).isEqualTo(1);
            byte[] large = megabytes(20);
            jedis.set("large".getBytes(UTF_8), large);
            assertThat(jedis.get("large".getBytes(UTF_8))).isEqualTo(large);
            assertThat(jedis.getrange("k", 0, -1)).isEqualTo("v");
        }
    }

    @Test
    void givenLettuce_whenUsedAsACache_thenItFindsWhatItNeeds() {
        try (RedisClient client = RedisClient.create(RedisURI.create("127.0.0.1", server.port()));
                StatefulRedisConnection<byte[], byte[]> connection = client.connect(ByteArrayCodec.INSTANCE)) {
            RedisCommands<byte[], byte[]> redis = connection.sync();
            assertThat(redis.set(
                            bytes("k"), bytes("v"), SetArgs.Builder.ex(10_000).nx()))
                    .isEqualTo("OK");
            assertThat(redis.set(bytes("k"), bytes("w"), SetArgs.Builder.nx())).isNull();
            assertThat(redis.get(bytes("k"))).isEqualTo(bytes("v"));
            assertThat(redis.get(bytes("absent"))).isNull();
            assertThat(redis.exists(bytes("k"))).isEqualTo(1);
            assertThat(redis.pttl(bytes("k"))).isBetween(9_000_000L, 10_000_000L);
            byte[] large = megabytes(20);
            redis.set(bytes("large"), large);
            assertThat(redis.get(bytes("large"))).isEqualTo(large);
            int keys = 0;
            var scan = ScanIterator.scan(redis, ScanArgs.Builder.limit(1));
            while (scan.hasNext()) {
                scan.next();
                keys++;
            }
            assertThat(keys).isEqualTo(2);
            assertThat(redis.info("memory")).contains("used_memory:");
            assertThat(redis.clientGetname()).isNull();
            assertThat(redis.clientList()).contains(" lib-name=", " resp=3 ");
            assertThat(redis.clientKill(KillArgs.Builder.id(redis.clientId()).skipme()))
                    .isZero();
            assertThat(redis.dbsize()).isEqualTo(2);
        }
    }

    /// A command that the library does not know.
    private record Word(String text) implements ProtocolKeyword {

        @Override
        public byte[] getBytes() {
            return text.getBytes(UTF_8);
        }

        @Override
        public String toString() {
            return text;
        }
    }

    private static long hint(RedisCommands<String, String> redis, String... words) {
        CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
        for (String word : words) {
            args.add(word);
        }
        return redis.dispatch(new Word("KV.HINT"), new IntegerOutput<>(StringCodec.UTF8), args);
    }

    @Test
    void givenLettuce_whenItSaysWhatItKnowsOfKeys_thenItHearsOfHowManyThatWasTaken() {
        try (RedisClient client = RedisClient.create(RedisURI.create("127.0.0.1", server.port()));
                StatefulRedisConnection<String, String> connection = client.connect(StringCodec.UTF8)) {
            RedisCommands<String, String> redis = connection.sync();
            redis.mset(Map.of("a", "1", "b", "2"));
            assertThat(hint(redis, "EXPECT", "a", "b", "absent")).isEqualTo(2);
            assertThat(hint(redis, "SESSION", "chat", "7", "1", "more", "a", "b"))
                    .isEqualTo(2);
            assertThat(hint(redis, "SESSION", "chat", "7", "2", "last", "a")).isEqualTo(1);
            assertThatThrownBy(() -> hint(redis, "SESSION", "chat", "7", "3", "over", "a"))
                    .hasMessage("ERR stage is over; it takes more, last");
            assertThat(redis.get("b")).isEqualTo("2");
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }
}
