package io.kvcache.server.block;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.block.BlockEndpoint.HexKey;
import io.kvcache.server.event.NamespaceIdResolver;
import io.kvcache.server.http.HttpConfig;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceOptions;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.ManualClock;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.quota.PartRead;
import io.kvcache.server.quota.Quota;
import io.kvcache.tiers.TickDrivenCache;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Parts of blocks and values on a disk that does nothing until the test lets it.
final class StalledDiskTest {

    /// Of 256 KiB: smaller blocks have no sums of parts.
    private static final String SHAPE =
            "{\"shape\":{\"layers\":4,\"kvHeads\":8,\"headDim\":128,\"blockTokens\":16,\"dtype\":\"bf16\"}}";

    private static final int BLOCK = 256 << 10;
    private static final int VALUE = 300_000;
    private static final int PART = 32 << 10;
    private static final int MAX_TICKS = 10_000;

    private final ManualClock time = new ManualClock();
    private final TickDrivenCache ticked = TickedDisk.openStore(time);
    private final TieredKvCache cache = ticked.cache();
    private final ByteBudget outgoing = new ByteBudget(2 * PART);
    private final TenantNamespaceRegistry namespaces = new TenantNamespaceRegistry(cache);
    private final BlockQuotaTrackers stocks = new BlockQuotaTrackers(
            cache, Map.of("default", new Quota(0)), new NamespaceIdResolver(cache)::resolve, _ -> true);
    private final EmbeddedConnection first = connect();
    private final EmbeddedConnection second = connect();

    @AfterEach
    void close() {
        first.close();
        second.close();
        cache.close();
    }

    private EmbeddedConnection connect() {
        BlockEndpoint area = new BlockEndpoint(
                cache,
                namespaces,
                Duration.ofHours(1),
                stocks,
                new BlockEndpoint.TransferBudgets(_ -> ByteBudget.unlimited(), _ -> outgoing));
        HttpConfig site = new HttpConfig(
                ListenerAuth.withoutAuth(PasswordAuthenticator.withoutPasswords(time)),
                Map.of(),
                Map.of(),
                List.of(new NamespaceEndpoint(namespaces), area),
                Set.of("*"));
        return new EmbeddedConnection(new HttpProtocol(site), time);
    }

    private void tick() {
        time.advance(Duration.ofMillis(1));
        ticked.tierScheduler().tick(0, 0);
    }

    private void tickUntil(BooleanSupplier holds) {
        for (int i = 0; !holds.getAsBoolean(); i++) {
            assertThat(i).as("ticks").isLessThan(MAX_TICKS);
            tick();
        }
    }

    /// Puts more than fits host memory, so that the first are on disk alone.
    private void fill(IntConsumer put) {
        for (int number = 0; number < 5 * (32 << 20) / 4 / BLOCK; number++) {
            put.accept(number);
            for (int each = 0; each < 8; each++) {
                tick(); // the disk keeps pace
            }
        }
    }

    private Keyspace openKeyspace(Duration fetchTimeout) {
        return new Keyspace(
                cache,
                Namespace.objects("objects", "default"),
                time,
                time,
                new KeyspaceOptions(
                        Duration.ofSeconds(2),
                        1 << 20,
                        fetchTimeout,
                        0,
                        new KeyspaceLimits(100, VALUE, ByteBudget.unlimited(), outgoing)));
    }

    /// Returns the key of a value that is on disk alone.
    private byte[] fill(Keyspace keyspace) {
        fill(number -> assertThat(keyspace.store(TestKeyspace.key("" + number), TestKeyspace.content(number, VALUE)))
                .isTrue());
        byte[] key = TestKeyspace.key("0");
        assertThat(keyspace.onDiskBytes(key)).isEqualTo(VALUE);
        return key;
    }

    private void put(String path, String body) {
        assertThat(first.ask(
                        "PUT " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + body.length() + "\r\n\r\n" + body))
                .startsWith("HTTP/1.1 20");
    }

    private static String path(int number) {
        return "/v1/blocks/m/%04x".formatted(number);
    }

    private static String getPart(int number) {
        return "GET " + path(number) + " HTTP/1.1\r\nHost: h\r\nRange: bytes=1000-" + (1000 + PART - 1) + "\r\n\r\n";
    }

    @Test
    void givenADiskThatStalls_whenPartsOfBlocksAreAskedFor_thenTheyCountUntilTheyHaveCome() {
        put("/v1/namespaces/m", SHAPE);
        fill(number -> put(path(number), "x".repeat(BLOCK)));
        Namespace namespace = Objects.requireNonNull(namespaces.find("default", "m"));
        assertThat(cache.diskBlock(namespace, HexKey.parse("key", "0000"))).isNotNull();
        assertThat(first.ask(getPart(0))).isEmpty();
        assertThat(second.ask(getPart(1))).isEmpty();
        assertThat(outgoing.usedBytes()).isEqualTo(2 * PART);
        try (EmbeddedConnection third = connect()) {
            assertThat(third.ask(getPart(2))).startsWith("HTTP/1.1 503 ").contains("limits.sending");
        }
        second.close();
        assertThat(outgoing.usedBytes()).isEqualTo(2 * PART);
        tickUntil(() -> outgoing.usedBytes() == 0);
        first.channel().runPendingTasks();
        assertThat(first.text()).startsWith("HTTP/1.1 206 ").endsWith("x".repeat(PART));
        assertThat(stocks.readStats().stats().get("default")).isEqualTo(new BlockReadStats.Stats(1, 0, 0, 0, 0, 1, 0));
    }

    @Test
    void givenADiskThatStalls_whenPartsOfAValueTimeOut_thenTheyCountUntilTheDiskIsDone() {
        Keyspace keyspace = openKeyspace(Duration.ofMillis(1));
        byte[] key = fill(keyspace);
        for (int from = 0; from < 2 * PART; from += PART) {
            PartRead part = Objects.requireNonNull(keyspace.readPart(key, VALUE, from, PART));
            assertThat(part.there().join()).isFalse();
        }
        assertThat(outgoing.usedBytes()).isEqualTo(2 * PART);
        assertThat(keyspace.readPart(key, VALUE, 0, PART)).isNull();
        tickUntil(() -> outgoing.usedBytes() == 0);
        assertThat(keyspace.readPart(key, VALUE, 0, PART)).isNotNull();
        tickUntil(() -> outgoing.usedBytes() == 0);
        assertThat(keyspace.stats().reads().hits()).isZero();
    }

    @Test
    void givenAValueOnDisk_whenAPartFollowsAnExists_thenThatIsOneLookUp() {
        Keyspace keyspace = openKeyspace(Duration.ofHours(1));
        byte[] key = fill(keyspace);
        assertThat(keyspace.exists(key)).isTrue();
        for (int reads = 1; reads <= 2; reads++) {
            PartRead part = Objects.requireNonNull(keyspace.readPart(key, VALUE, 0, PART));
            tickUntil(part.there()::isDone);
            assertThat(part.there()).isCompletedWithValue(true);
            keyspace.onPartRead(key, PART);
            assertThat(keyspace.stats().reads().hits()).isEqualTo(reads);
            assertThat(keyspace.stats().fromDisk()).isEqualTo(reads);
            assertThat(cache.stats().namespaces().getFirst().objectsFound()).isEqualTo(reads);
        }
    }
}
