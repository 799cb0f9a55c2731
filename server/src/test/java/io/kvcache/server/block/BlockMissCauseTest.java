package io.kvcache.server.block;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Clock;
import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.block.BlockEndpoint.HexKey;
import io.kvcache.server.event.NamespaceIdResolver;
import io.kvcache.server.http.HttpConfig;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.keyspace.ManualClock;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.quota.Quota;
import io.kvcache.tiers.TickDrivenCache;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// The causes under which misses of blocks over HTTP are counted.
@Timeout(120)
@Tag("slow")
final class BlockMissCauseTest {

    private static final int BLOCK = 64 << 10;

    /// A shape with blocks of 64 KiB.
    private static final String SHAPE =
            "{\"shape\":{\"layers\":1,\"kvHeads\":8,\"headDim\":128,\"blockTokens\":16,\"dtype\":\"bf16\"}}";

    /// A store's blocks behind a connection.
    private static final class Served implements AutoCloseable {

        private final BlockQuotaTrackers stocks;
        private final TenantNamespaceRegistry namespaces;
        private final EmbeddedConnection embeddedConnection;

        Served(TieredKvCache cache, ManualClock time, Quota quota, Duration arrival) {
            stocks = new BlockQuotaTrackers(
                    cache, Map.of("default", quota), new NamespaceIdResolver(cache)::resolve, _ -> true);
            namespaces = new TenantNamespaceRegistry(cache);
            BlockEndpoint area = new BlockEndpoint(
                    cache,
                    namespaces,
                    arrival,
                    stocks,
                    new BlockEndpoint.TransferBudgets(_ -> ByteBudget.unlimited(), _ -> ByteBudget.unlimited()));
            HttpConfig site = new HttpConfig(
                    ListenerAuth.withoutAuth(PasswordAuthenticator.withoutPasswords(time)),
                    Map.of(),
                    Map.of(),
                    List.of(new NamespaceEndpoint(namespaces), area),
                    Set.of("*"));
            embeddedConnection = new EmbeddedConnection(new HttpProtocol(site), time);
            assertThat(embeddedConnection.ask(request("PUT", "/v1/namespaces/m", SHAPE.length()) + SHAPE))
                    .startsWith("HTTP/1.1 20");
        }

        static String key(int number) {
            return "%04x".formatted(number);
        }

        private static String request(String method, String path, int bytes) {
            return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + bytes + "\r\n\r\n";
        }

        Namespace namespace() {
            return Objects.requireNonNull(namespaces.find("default", "m"));
        }

        void put(int number) {
            assertThat(embeddedConnection.ask(request("PUT", "/v1/blocks/m/" + key(number), BLOCK) + "x".repeat(BLOCK)))
                    .startsWith("HTTP/1.1 201 ");
        }

        String ask(String method, int number) {
            return embeddedConnection.ask(request(method, "/v1/blocks/m/" + key(number), 0));
        }

        BlockReadStats.Stats reads() {
            return Objects.requireNonNull(stocks.readStats().stats().get("default"));
        }

        @Override
        public void close() {
            embeddedConnection.close();
        }
    }

    private static long pages(int blocks) {
        return blocks * Quota.chargedBytes(BLOCK);
    }

    @Test
    void givenBlocksThatLeftInEachWay_whenAskedFor_thenTheMissSaysWhich() {
        try (TestKeyspace test = TestKeyspace.small();
                Served served = new Served(test.cache(), test.time(), new Quota(pages(2)), Duration.ZERO)) {
            assertThat(served.ask("GET", 9)).startsWith("HTTP/1.1 404 ");
            for (int number = 0; number < 3; number++) {
                served.put(number);
            }
            served.stocks.tick();
            assertThat(served.ask("GET", 0)).startsWith("HTTP/1.1 404 ");
            assertThat(served.ask("DELETE", 1)).startsWith("HTTP/1.1 200 ");
            served.stocks.tick();
            assertThat(served.ask("GET", 1)).startsWith("HTTP/1.1 404 ");
            assertThat(served.ask("HEAD", 2)).startsWith("HTTP/1.1 200 ");
            assertThat(served.reads()).isEqualTo(new BlockReadStats.Stats(1, 1, 0, 1, 1, 0, 0));
        }
    }

    @Test
    void givenAFullStore_whenEvictedBlocksAreAskedFor_thenTheMissesSaySo() {
        int stored = 1100; // 68 MiB
        try (TestKeyspace test = TestKeyspace.small();
                Served served = new Served(test.cache(), test.time(), new Quota(0), Duration.ZERO)) {
            for (int number = 0; number < stored; number++) {
                served.put(number);
            }
            served.stocks.tick();
            for (int number = 0; number < stored; number++) {
                served.ask("HEAD", number);
            }
            BlockReadStats.Stats reads = served.reads();
            assertThat(reads.evicted()).isPositive();
            assertThat(reads)
                    .isEqualTo(new BlockReadStats.Stats(stored - reads.evicted(), 0, reads.evicted(), 0, 0, 0, 0));
        }
    }

    /// A clock that advances at each reading.
    private record Running(ManualClock time) implements Clock {

        @Override
        public long nanos() {
            sleep(1000);
            return time.nanos();
        }

        @Override
        public void sleep(long nanos) {
            time.sleep(nanos);
        }

        @Override
        public void await(Object monitor, long nanos) {
            time.sleep(nanos);
        }
    }

    private static void tick(TickDrivenCache ticked, ManualClock time) {
        time.advance(Duration.ofMillis(1));
        ticked.tierScheduler().tick(0, 0);
    }

    private static boolean isAway(TieredKvCache cache, Served served, int number) {
        List<byte[]> key = List.of(HexKey.bytes("key", Served.key(number)));
        return cache.match(BlockChain.ofEngineKeys(served.namespace(), key)).diskBlocks() == 1;
    }

    @Test
    void givenABlockOnDisk_whenItDoesNotComeInTime_thenItIsLateUntilItIsThere() {
        int stored = 600; // 512 fit the memory
        ManualClock time = new ManualClock();
        TickDrivenCache ticked = TickedDisk.openStore(new Running(time));
        TieredKvCache cache = ticked.cache();
        try (Served served = new Served(cache, time, new Quota(0), Duration.ofNanos(1))) {
            for (int number = 0; number < stored; number++) {
                served.put(number);
                for (int each = 0; each < 8; each++) {
                    tick(ticked, time); // the disk keeps pace
                }
            }
            int away = 0;
            while (away < stored && !isAway(cache, served, away)) {
                away++;
            }
            assertThat(away).as("a block on disk alone").isLessThan(stored);

            assertThat(served.ask("GET", away))
                    .startsWith("HTTP/1.1 503 ")
                    .containsIgnoringCase("retry-after: 1\r\n")
                    .contains("urn:kvcache:problem:late");
            assertThat(served.reads()).isEqualTo(new BlockReadStats.Stats(0, 0, 0, 0, 0, 0, 1));

            try (BlockTable table =
                    cache.acquire(served.namespace(), HexKey.parse("key", Served.key(away)), Duration.ofMinutes(10))) {
                while (table.readyBlocks() == 0 && table.blocks() > 0) {
                    tick(ticked, time);
                }
                assertThat(table.readyBlocks()).isEqualTo(1);
            }
            assertThat(served.ask("GET", away)).startsWith("HTTP/1.1 200 ");
            assertThat(served.reads()).isEqualTo(new BlockReadStats.Stats(1, 0, 0, 0, 0, 0, 1));
        }
        cache.close();
    }
}
