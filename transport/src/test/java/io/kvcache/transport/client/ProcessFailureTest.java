package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.EndpointStats;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.shm.ShmDirectory;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// A client that is killed in the middle of puts and reads leaves nothing behind, and a server that is
/// stopped delays no call beyond its timeout: over TCP and shared memory.
@EnabledOnOs(OS.LINUX)
@Timeout(120)
final class ProcessFailureTest {

    /// Little to wait for a server that does not answer, and enough for one that does on a busy machine.
    private static final Duration SHORT = Duration.ofSeconds(1);

    static TieredKvCache store() {
        return TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .closeWait(Duration.ofSeconds(10))
                .build();
    }

    @Test
    @Tag("slow")
    void givenATcpClientInTheMiddleOfPutsAndReads_whenKilled_thenAllIsBackAndNothingIsWrong() throws Exception {
        try (TieredKvCache store = store();
                TcpEndpoint endpoint = TcpEndpoint.open(
                        store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS)) {
            killed(store, endpoint::stats, "127.0.0.1:" + endpoint.address().getPort());
        }
    }

    static void killed(TieredKvCache store, Supplier<EndpointStats> stats, String address) throws Exception {
        store.register(TestBlocks.SPACE);
        try (TestProcess client = TestProcess.start("storm", address)) {
            assertThat(client.line()).isEqualTo("RESERVED");
            for (int i = 0; i < 10; i++) {
                assertThat(client.line()).isEqualTo("put");
            }
            client.kill();
        }
        TestBlocks.await(
                "all is back",
                () -> stats.get().sessions() == 0 && store.stats().openTables() == 0);
        assertThat(stats.get().reservations().open()).isZero();
        assertThat(stats.get().leases().open()).isZero();
        assertThat(stats.get().leases().granted()).as("it has read").isPositive();
        int found = 0;
        for (int seed = 1; seed < 64; seed++) {
            found += TestBlocks.verified(store, TestBlocks.chain(seed, 2));
        }
        assertThat(found).isPositive();
        store.validate();
    }

    @Test
    @Tag("slow")
    void givenAStoppedServer_whenAskedOverTcp_thenAnswersInTimeAndARecovery() throws Exception {
        try (TestProcess server = TestProcess.start("serve", "0");
                RemoteKvCache cache = connect("127.0.0.1:" + server.line(), SHORT)) {
            BlockChain chain = stopped(server, cache);
            assertThat(cache.putAll(chain, 0, blocks(), KvCache.NO_WAIT).stored())
                    .isZero();
            assertThatThrownBy(cache::stats).isInstanceOf(UncheckedIOException.class);
            goesOn(server, cache, chain);
        }
    }

    static RemoteKvCache connect(String address, Duration request) {
        RemoteKvCacheBuilder builder = RemoteKvCache.builder(address).requestTimeout(request);
        AtomicReference<RemoteKvCache> connected = new AtomicReference<>();
        TestBlocks.await("it is connected in so short a time", () -> {
            try {
                connected.set(builder.connect());
                return true;
            } catch (UncheckedIOException slow) {
                return false;
            }
        });
        RemoteKvCache cache = connected.get();
        cache.register(TestBlocks.SPACE);
        return cache;
    }

    /// Puts three blocks, and stops the server, which then answers nothing.
    static BlockChain stopped(TestProcess server, RemoteKvCache cache) throws Exception {
        BlockChain chain = TestBlocks.chain(1, 3);
        for (int index = 0; index < 3; index++) {
            int next = index;
            TestBlocks.await("it is put", () -> TestBlocks.put(cache, chain, next));
        }
        server.stop();
        assertThat(cache.match(chain)).isEqualTo(Match.NOTHING);
        assertThat(TestBlocks.verified(cache, chain)).isZero();
        assertThat(TestBlocks.put(cache, TestBlocks.chain(2, 1), 0)).isFalse();
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(TestBlocks.PATIENCE.toNanos() / 60))) {
            assertThat(table.await(3, TestBlocks.PATIENCE)).isZero();
        }
        return chain;
    }

    static void goesOn(TestProcess server, RemoteKvCache cache, BlockChain chain) throws Exception {
        server.signal("CONT");
        TestBlocks.await("an answer again", () -> TestBlocks.verified(cache, chain) == 3);
        assertThat(cache.remoteStats().memoryUsed()).isZero();
    }

    private static List<MemorySegment> blocks() {
        return List.of(MemorySegment.ofArray(new byte[TestBlocks.BLOCK_BYTES]));
    }

    @Test
    @Tag("slow")
    void givenAStoppedServer_whenItsMemoryIsMapped_thenReadsGoOnAndPutsEndInTime() throws Exception {
        try (ShmDirectory shared = ShmDirectory.make();
                TestProcess server =
                        TestProcess.start("serve", "0", shared.path().toString())) {
            try (RemoteKvCache cache = connect("shm:127.0.0.1:" + server.line(), SHORT)) {
                BlockChain chain = TestBlocks.chain(1, 1);
                TestBlocks.await("it is put", () -> TestBlocks.put(cache, chain, 0));
                TestBlocks.await(
                        "it is put through shared memory",
                        () -> cache.remoteStats().staged() > 0 || TestBlocks.put(cache, TestBlocks.chain(7, 1), 0));
                server.stop();
                List<MemorySegment> into = blocks();
                if (cache.getAll(chain, 0, into) > 0) { // unless the session was taken for over meanwhile
                    BlockContent.of(chain.key(0)).requireEqual(into.getFirst());
                }
                assertThat(TestBlocks.put(cache, TestBlocks.chain(2, 1), 0)).isFalse();
                assertThat(cache.putAll(TestBlocks.chain(3, 1), 0, blocks(), KvCache.NO_WAIT)
                                .stored())
                        .isZero();
                server.signal("CONT");
                TestBlocks.await("an answer again", () -> TestBlocks.verified(cache, chain) == 1);
                TestBlocks.await("room again", () -> TestBlocks.put(cache, TestBlocks.chain(4, 1), 0));
            }
            server.kill();
        }
    }
}
