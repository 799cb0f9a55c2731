package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.shm.ShmDirectory;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// A cache whose first server was away goes back to it, and what is open elsewhere goes on there.
@EnabledOnOs(OS.LINUX)
@Timeout(300)
@Tag("slow")
final class FailbackTest {

    private static final Duration SOON = Duration.ofMillis(10);
    private static final Namespace OBJECTS = Namespace.objects("objects", "tenant");

    private final ShmDirectory folder = ShmDirectory.make();
    private final TieredKvCache one = builder().build();
    private final TieredKvCache two = builder().shareMemory(folder.path()).build();

    private static TieredKvCacheBuilder builder() {
        return TieredKvCache.builder()
                .hostBytes(128 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .closeWait(Duration.ofSeconds(10));
    }

    @AfterEach
    void close() {
        one.close();
        two.close();
        folder.close();
    }

    /// Not where clients come from: one that connects again could get the very port that it looks
    /// for.
    private static InetSocketAddress place(int port) throws IOException {
        return new InetSocketAddress(InetAddress.getByName("127.0.0.2"), port);
    }

    private static TcpEndpoint serve(KvCache store, int port) throws IOException {
        return TcpEndpoint.open(store, place(port), EndpointOptions.DEFAULTS);
    }

    private static String address(int port) {
        return "127.0.0.2:" + port;
    }

    /// A port at which nobody listens any more.
    private static int free() throws IOException {
        try (ServerSocket socket = new ServerSocket()) {
            socket.setReuseAddress(true);
            socket.bind(place(0));
            return socket.getLocalPort();
        }
    }

    private static int port(TcpEndpoint endpoint) {
        return endpoint.address().getPort();
    }

    private static RemoteKvCacheBuilder client(String first, String second) {
        return RemoteKvCache.builder(first, second)
                .requestTimeout(TestBlocks.PATIENCE)
                .failbackAfter(SOON);
    }

    @Test
    void givenTheFirstIsKilled_whenItIsStartedAgain_thenItIsUsedAgainAndEventsSayThatSomeWereLost() throws Exception {
        TestProcess first = TestProcess.start("serve", "0");
        int port = Integer.parseInt(first.line());
        try (TcpEndpoint second = serve(two, 0);
                RemoteKvCache cache =
                        client("127.0.0.1:" + port, address(port(second))).connect()) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 3);
            first.kill();
            TestBlocks.await("another server", () -> TestBlocks.put(cache, chain, 0));
            assertThat(cache.server()).isEqualTo(address(port(second)));
            EventBatch before = cache.events().since(0, 100);
            first = TestProcess.start("serve", Integer.toString(port));
            assertThat(first.line()).isEqualTo(Integer.toString(port));
            TestBlocks.await("the first again", () -> cache.server().equals("127.0.0.1:" + port));
            assertThat(cache.match(chain).blocks()).as("it is a new one").isZero();
            assertThat(TestBlocks.verified(cache, TestBlocks.stored(cache, 1, 3)))
                    .isEqualTo(3);
            assertThat(cache.events().since(before.nextSequence(), 100).hasGap())
                    .isTrue();
            TestBlocks.await("the other is left", () -> second.stats().sessions() == 0);
            assertThat(cache.remoteStats().connected()).isTrue();
        } finally {
            first.close();
        }
    }

    @Test
    void givenOpenTablesViewsAndWriters_whenItGoesBack_thenTheyGoOnWhereTheyAreAndThenThatSessionEnds()
            throws Exception {
        int port = free();
        EndpointOptions options = EndpointOptions.DEFAULTS.withMaxLease(TestProcess.SHORT_LEASE);
        byte[] key = {1, 2, 3};
        try (TcpEndpoint second = TcpEndpoint.open(two, place(0), options);
                RemoteKvCache cache =
                        client(address(port), "shm:" + address(port(second))).connect()) {
            cache.register(TestBlocks.SPACE);
            cache.register(OBJECTS);
            BlockChain chain = TestBlocks.stored(cache, 1, 3);
            TestBlocks.putObject(cache, OBJECTS, key, new BlockContent(7).toHeapSegment(100_000));
            BlockTable table = cache.acquire(chain);
            BlockTable arriving = cache.acquire(chain, 0, TestBlocks.PATIENCE);
            ObjectView view = Objects.requireNonNull(cache.getObject(OBJECTS, key));
            BlockWriter writer = cache.put(TestBlocks.chain(2, 1), 0, 0, KvCache.NO_WAIT);
            assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
            try (TcpEndpoint first = serve(one, port)) {
                TestBlocks.await("the first", () -> cache.server().equals(address(port)));
                long heard = second.stats().requests();
                TestBlocks.await("leases are renewed", () -> second.stats().requests() > heard + 1);
                assertThat(cache.remoteStats().sharedMemory()).isFalse();
                assertThat(TestBlocks.verify(table, chain)).isEqualTo(3);
                assertThat(arriving.await(3, TestBlocks.PATIENCE)).isEqualTo(3);
                assertThat(TestBlocks.verify(arriving, chain)).isEqualTo(3);
                assertThat(table.isValid() && arriving.isValid() && view.isValid())
                        .isTrue();
                BlockContent.of(TestBlocks.chain(2, 1).key(0)).fill(writer.segment());
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
                assertThat(two.match(TestBlocks.chain(2, 1)).blocks()).isEqualTo(1);
                assertThat(TestBlocks.verified(cache, TestBlocks.stored(cache, 3, 1)))
                        .isEqualTo(1);
                assertThat(two.match(TestBlocks.chain(3, 1)).blocks()).isZero();
                writer.close();
                arriving.close();
                view.close();
                assertThat(second.stats().sessions()).as("a table is open").isEqualTo(1);
                table.close();
                TestBlocks.await(
                        "all is given back",
                        () -> second.stats().sessions() == 0 && two.stats().openTables() == 0);
                assertThat(first.stats().sessions()).isEqualTo(1);
            }
        }
    }

    @Test
    void givenCallsWithoutAPause_whenItGoesBackAgainAndAgain_thenNoneFailsForThat() throws Exception {
        int port = free();
        AtomicBoolean over = new AtomicBoolean();
        AtomicInteger wrong = new AtomicInteger();
        AtomicIntegerArray calls = new AtomicIntegerArray(3);
        try (TcpEndpoint second = serve(two, 0);
                RemoteKvCache cache =
                        client(address(port), address(port(second))).connect()) {
            cache.register(TestBlocks.SPACE);
            one.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 2);
            TestBlocks.stored(one, 1, 2);
            List<Thread> callers = IntStream.range(0, calls.length())
                    .mapToObj(i -> Thread.ofPlatform().start(() -> {
                        while (!over.get()) {
                            wrong.addAndGet(TestBlocks.verified(cache, chain) == 2 ? 0 : 1);
                            cache.match(chain);
                            calls.incrementAndGet(i);
                        }
                    }))
                    .toList();
            try {
                for (int round = 0; round < 3; round++) {
                    int missed = wrong.get();
                    long failed = cache.remoteStats().failed();
                    try (TcpEndpoint first = serve(one, port)) {
                        TestBlocks.await("the first", () -> cache.server().equals(address(port)));
                        TestBlocks.await(
                                "the other is left", () -> second.stats().sessions() == 0);
                        assertThat(wrong.get()).isEqualTo(missed);
                        assertThat(cache.remoteStats().failed()).isEqualTo(failed);
                        assertThat(first.stats().sessions()).isEqualTo(1);
                    }
                    TestBlocks.await("the second", () -> cache.server().equals(address(port(second))));
                    TestBlocks.await("hits", () -> TestBlocks.verified(cache, chain) == 2);
                    called(calls);
                }
            } finally {
                over.set(true);
                for (Thread caller : callers) {
                    caller.join();
                }
            }
            assertThat(cache.remoteStats().memoryUsed()).isZero();
        }
    }

    /// Returns when all have called and been answered: what they had begun when a server went has
    /// failed by then.
    private static void called(AtomicIntegerArray calls) {
        for (int i = 0; i < calls.length(); i++) {
            int caller = i;
            int before = calls.get(caller);
            TestBlocks.await("calls", () -> calls.get(caller) > before + 1);
        }
    }

    @Test
    void givenAFirstThatDoesNotTakeAllNamespaces_whenItIsThere_thenTheCacheStaysWhereItIs() throws Exception {
        int port = free();
        one.register(Namespace.of("sample", BlockShape.kv(16, 2, 1024, 16, Dtype.BF16)));
        try (TcpEndpoint second = serve(two, 0);
                RemoteKvCache cache =
                        client(address(port), address(port(second))).connect()) {
            cache.register(TestBlocks.SPACE);
            try (TcpEndpoint first = serve(one, port)) {
                TestBlocks.await("it is asked", () -> first.stats().sessionsBegun() > 2);
                assertThat(cache.server()).isEqualTo(address(port(second)));
                assertThat(TestBlocks.verified(cache, TestBlocks.stored(cache, 1, 2)))
                        .isEqualTo(2);
            }
        }
    }

    @Test
    @Tag("slow")
    void givenAFirstThatSaysNothingOrNonsense_whenAsked_thenTheCacheServesOnAndGoesBackWhenItIsRight()
            throws Exception {
        int port = free();
        try (TcpEndpoint second = serve(two, 0);
                RemoteKvCache cache = client(address(port), address(port(second)))
                        .requestTimeout(Duration.ofSeconds(6))
                        .connect()) {
            cache.register(TestBlocks.SPACE);
            try (ServerSocket silent = listen(port);
                    Socket asked = silent.accept()) {
                assertThat(asked.getInputStream().read()).as("of HELLO").isEqualTo('K');
                assertThat(TestBlocks.verified(cache, TestBlocks.stored(cache, 1, 2)))
                        .isEqualTo(2);
                TestBlocks.await("it gives up", () -> ended(asked));
            }
            try (ServerSocket mad = listen(port);
                    Socket asked = mad.accept()) {
                asked.getOutputStream().write("KVC1 is what I say\r\n".repeat(9).getBytes(StandardCharsets.UTF_8));
                TestBlocks.await("it gives up", () -> ended(asked));
            }
            assertThat(cache.server()).isEqualTo(address(port(second)));
            try (TcpEndpoint first = serve(one, port)) {
                TestBlocks.await("the first", () -> cache.server().equals(address(port)));
                assertThat(TestBlocks.verified(cache, TestBlocks.stored(cache, 1, 2)))
                        .isEqualTo(2);
                assertThat(first.stats().sessions()).isEqualTo(1);
            }
        }
    }

    private static ServerSocket listen(int port) throws IOException {
        ServerSocket socket = new ServerSocket();
        socket.setReuseAddress(true);
        socket.bind(place(port));
        return socket;
    }

    private static boolean ended(Socket peer) {
        try {
            while (peer.getInputStream().read() >= 0) {
                assertThat(peer.isConnected()).isTrue();
            }
            return true;
        } catch (IOException reset) {
            return true;
        }
    }

    @Test
    void givenACacheThatIsToStay_whenTheFirstIsThere_thenOthersGoBackAndItDoesNot() throws Exception {
        int port = free();
        try (TcpEndpoint second = serve(two, 0);
                RemoteKvCache stays = client(address(port), address(port(second)))
                        .failbackAfter(Duration.ZERO)
                        .connect();
                RemoteKvCache goes =
                        client(address(port), address(port(second))).connect();
                TcpEndpoint first = serve(one, port)) {
            TestBlocks.await("the first", () -> goes.server().equals(address(port)));
            assertThat(stays.server()).isEqualTo(address(port(second)));
            assertThat(first.stats().sessionsBegun()).isEqualTo(1);
        }
    }

    @Test
    void givenATimeOutOfRange_whenSet_thenRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemoteKvCache.builder("a:1", "b:2").failbackAfter(Duration.ofMillis(9)))
                .withMessageContaining("failbackAfter = PT0.009S; allowed: PT0.01S to PT10M");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemoteKvCache.builder("a:1", "b:2").failbackAfter(Duration.ofMinutes(11)))
                .withMessageContaining("allowed:");
    }
}
