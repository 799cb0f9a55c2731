package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.options.StagingLimits;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.shm.ShmDirectory;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// What is put through memory that client and server share, and what becomes of that when one of them dies.
@EnabledOnOs(OS.LINUX)
@Timeout(120)
@Tag("slow")
final class StagingClientTest {

    private final ShmDirectory folder = ShmDirectory.make();

    @AfterEach
    void removeFolder() {
        folder.close();
    }

    private TieredKvCache store(StagingLimits limits) {
        return TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .shareMemory(folder.path())
                .stagingLimits(limits)
                .closeWait(Duration.ofSeconds(10))
                .build();
    }

    private static TcpEndpoint serve(KvCache store) throws IOException {
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        return TcpEndpoint.open(store, any, EndpointOptions.DEFAULTS);
    }

    private static RemoteKvCacheBuilder client(TcpEndpoint endpoint) {
        return RemoteKvCache.builder("shm:127.0.0.1:" + endpoint.address().getPort())
                .requestTimeout(TestBlocks.PATIENCE);
    }

    private long staged() throws IOException {
        return folder.files().stream().filter(name -> name.startsWith("stage-")).count();
    }

    private static List<MemorySegment> contents(BlockChain chain) {
        return IntStream.range(0, chain.length())
                .mapToObj(index -> BlockContent.of(chain.key(index)).toHeapSegment(TestBlocks.BLOCK_BYTES))
                .toList();
    }

    @Test
    void givenAServerThatSharesItsMemory_whenPutTo_thenNoByteIsSent() throws IOException {
        Namespace objects = Namespace.objects("objects", "tenant");
        byte[] key = {1, 2, 3};
        int objectBytes = (2 << 20) + 5000;
        BlockContent content = new BlockContent(7);
        try (TieredKvCache store = store(StagingLimits.DEFAULTS);
                TcpEndpoint endpoint = serve(store)) {
            try (RemoteKvCache cache = client(endpoint).connect()) {
                cache.register(TestBlocks.SPACE);
                cache.register(objects);
                assertThat(staged()).as("nothing is put yet").isZero();
                BlockChain one = TestBlocks.stored(cache, 1, 5);
                BlockChain run = TestBlocks.chain(2, 20);
                assertThat(cache.putAll(run, 0, contents(run), KvCache.NO_WAIT).stored())
                        .isEqualTo(20);
                TestBlocks.putObject(cache, objects, key, content.toHeapSegment(objectBytes));
                assertThat(staged()).isEqualTo(1);
                assertThat(TestBlocks.verified(store, one)).isEqualTo(5);
                assertThat(TestBlocks.verified(store, run)).isEqualTo(20);
                try (ObjectView view = Objects.requireNonNull(store.getObject(objects, key))) {
                    MemorySegment copy = MemorySegment.ofArray(new byte[objectBytes]);
                    view.copyTo(0, objectBytes, copy);
                    content.requireEqual(copy);
                }
                assertThat(cache.remoteStats().staged()).isEqualTo(26);
                assertThat(cache.remoteStats().failed()).isZero();
                assertThat(endpoint.stats().bytesIn()).isZero();
                assertThat(endpoint.stats().bytesStaged()).isEqualTo(25L * TestBlocks.BLOCK_BYTES + objectBytes);
            }
            TestBlocks.await("it is given back", this::nothingIsStaged);
        }
    }

    @Test
    void givenObjectsAtHand_whenStored_thenTheyAreNotSentButForThoseWithoutRoom() throws IOException {
        Namespace objects = Namespace.objects("objects", "tenant");
        try (TieredKvCache store = store(StagingLimits.DEFAULTS);
                TcpEndpoint endpoint = serve(store);
                RemoteKvCache cache = client(endpoint).stagingBytes(1 << 20).connect()) {
            cache.register(objects);
            int sent = 0;
            for (int bytes : new int[] {1, 100_000, 1 << 20, (1 << 20) + 1, 4096}) {
                byte[] key = {(byte) bytes, 7};
                BlockContent content = new BlockContent(bytes);
                assertThat(cache.storeObject(objects, key, content.toHeapSegment(bytes), KvCache.NO_WAIT))
                        .isTrue();
                sent += bytes > 1 << 20 ? bytes : 0;
                assertThat(endpoint.stats().bytesIn()).isEqualTo(sent);
                try (ObjectView view = Objects.requireNonNull(store.getObject(objects, key))) {
                    MemorySegment copy = MemorySegment.ofArray(new byte[bytes]);
                    view.copyTo(0, bytes, copy);
                    content.requireEqual(copy);
                }
            }
            assertThat(cache.remoteStats().staged()).isEqualTo(4);
            assertThat(cache.remoteStats().failed()).isZero();
            assertThat(cache.remoteStats().memoryUsed()).isZero();
            assertThat(endpoint.stats().bytesStaged()).isEqualTo(1 + 100_000 + (1 << 20) + 4096);
        }
    }

    private boolean nothingIsStaged() {
        try {
            return staged() == 0;
        } catch (IOException unreadable) {
            throw new AssertionError(unreadable);
        }
    }

    @Test
    void givenLittleStagingMemory_whenMuchIsWritten_thenTheRestIsSent() throws IOException {
        try (TieredKvCache store = store(StagingLimits.DEFAULTS);
                TcpEndpoint endpoint = serve(store);
                RemoteKvCache cache = client(endpoint)
                        .stagingBytes(2 * TestBlocks.BLOCK_BYTES)
                        .connect()) {
            cache.register(TestBlocks.SPACE);
            List<BlockWriter> writers = new ArrayList<>();
            for (int seed = 0; seed < 4; seed++) {
                writers.add(cache.put(TestBlocks.chain(seed, 1), 0, 0, KvCache.NO_WAIT));
            }
            assertThat(cache.remoteStats().memoryUsed()).as("of two").isEqualTo(2 * TestBlocks.BLOCK_BYTES);
            for (int seed = 0; seed < 4; seed++) {
                try (BlockWriter writer = writers.get(seed)) {
                    BlockContent.of(TestBlocks.chain(seed, 1).key(0)).fill(writer.segment());
                    assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
                }
                assertThat(TestBlocks.verified(store, TestBlocks.chain(seed, 1)))
                        .isEqualTo(1);
            }
            BlockChain run = TestBlocks.chain(9, 12);
            assertThat(cache.putAll(run, 0, contents(run), KvCache.NO_WAIT).stored())
                    .isEqualTo(12);
            assertThat(TestBlocks.verified(store, run)).isEqualTo(12);
            assertThat(endpoint.stats().bytesIn()).isPositive();
            assertThat(endpoint.stats().bytesStaged()).isPositive();
            assertThat(endpoint.stats().bytesIn() + endpoint.stats().bytesStaged())
                    .isEqualTo(16L * TestBlocks.BLOCK_BYTES);
            assertThat(cache.remoteStats().memoryUsed()).isZero();
        }
    }

    @Test
    void givenAServerThatHasNoneLeftOrGivesNone_whenPutTo_thenBytesAreSent() throws IOException {
        for (StagingLimits limits : List.of(new StagingLimits(4 << 20, 4 << 20), StagingLimits.NONE)) {
            try (TieredKvCache store = store(limits);
                    TcpEndpoint endpoint = serve(store);
                    RemoteKvCache first = client(endpoint).connect();
                    RemoteKvCache second = client(endpoint).connect();
                    RemoteKvCache without = client(endpoint).stagingBytes(0).connect()) {
                int seed = 0;
                for (RemoteKvCache cache : List.of(first, second, without)) {
                    cache.register(TestBlocks.SPACE);
                    BlockChain chain = TestBlocks.stored(cache, ++seed, 3);
                    assertThat(TestBlocks.verified(store, chain)).isEqualTo(3);
                    boolean given = cache.equals(first) && !limits.equals(StagingLimits.NONE);
                    assertThat(cache.remoteStats().staged()).isEqualTo(given ? 3 : 0);
                    assertThat(cache.remoteStats().sharedMemory()).isTrue();
                }
            }
        }
    }

    @Test
    void givenAWriterThatIsAbandoned_whenOthersPut_thenItsPlaceIsUsedAgain() throws IOException {
        try (TieredKvCache store = store(StagingLimits.DEFAULTS);
                TcpEndpoint endpoint = serve(store);
                RemoteKvCache cache =
                        client(endpoint).stagingBytes(TestBlocks.BLOCK_BYTES).connect()) {
            cache.register(TestBlocks.SPACE);
            for (int seed = 0; seed < 10; seed++) {
                try (BlockWriter abandoned = cache.put(TestBlocks.chain(seed, 1), 0, 0, KvCache.NO_WAIT)) {
                    assertThat(abandoned.outcome()).isEqualTo(PutOutcome.RESERVED);
                    abandoned.segment().fill((byte) seed);
                }
                assertThat(TestBlocks.verified(store, TestBlocks.stored(cache, seed, 1)))
                        .isEqualTo(1);
            }
            assertThat(cache.remoteStats().staged()).isEqualTo(10);
            assertThat(store.stats().puts().abandoned()).isEqualTo(10);
        }
    }

    @Test
    @Tag("slow")
    void givenAClientThatIsKilledWhileItWrites_whenItIsGone_thenAllIsBackAndNothingIsWrong() throws Exception {
        try (TieredKvCache store = store(StagingLimits.DEFAULTS);
                TcpEndpoint endpoint = serve(store)) {
            store.register(TestBlocks.SPACE);
            try (TestProcess client = TestProcess.start(
                    "storm", "shm:127.0.0.1:" + endpoint.address().getPort())) {
                assertThat(client.line()).isEqualTo("RESERVED");
                for (int i = 0; i < 10; i++) {
                    assertThat(client.line()).isEqualTo("put");
                }
                assertThat(staged()).isEqualTo(1);
                client.kill();
            }
            TestBlocks.await(
                    "all is back",
                    () -> endpoint.stats().sessions() == 0 && store.stats().openTables() == 0 && nothingIsStaged());
            assertThat(endpoint.stats().reservations().open()).isZero();
            assertThat(endpoint.stats().reservations().expired())
                    .as("the one that it held")
                    .isPositive();
            int found = 0;
            for (int seed = 1; seed < 64; seed++) {
                found += TestBlocks.verified(store, TestBlocks.chain(seed, 2));
            }
            assertThat(found).isPositive();
            store.validate();
        }
    }

    @Test
    @Tag("slow")
    void givenAServerThatIsKilledInTheMiddle_whenPutTo_thenErrorsAtOnceAndTheNextOneHasItsOwn() throws Exception {
        int port;
        try (TestProcess first = TestProcess.start("serve", "0", folder.path().toString())) {
            port = Integer.parseInt(first.line());
            // Nobody could wait for this: what is noticed is that the connection breaks.
            try (RemoteKvCache cache = RemoteKvCache.builder("shm:127.0.0.1:" + port)
                    .requestTimeout(Duration.ofMinutes(9))
                    .connect()) {
                cache.register(TestBlocks.SPACE);
                Namespace objects = Namespace.objects("objects", "tenant");
                cache.register(objects);
                MemorySegment content = new BlockContent(7).toHeapSegment(100_000);
                BlockWriter open = cache.put(TestBlocks.chain(1, 1), 0, 0, KvCache.NO_WAIT);
                assertThat(open.outcome()).isEqualTo(PutOutcome.RESERVED);
                AtomicInteger puts = new AtomicInteger();
                Thread killer = Thread.ofPlatform().start(() -> {
                    TestBlocks.await("puts", () -> puts.get() >= 20);
                    kill(first);
                });
                int seed = 100;
                while (killer.isAlive() || cache.remoteStats().connected()) {
                    TestBlocks.put(cache, TestBlocks.chain(++seed, 1), 0);
                    cache.storeObject(objects, new byte[] {1}, content, KvCache.NO_WAIT);
                    puts.incrementAndGet();
                }
                BlockContent.of(TestBlocks.chain(1, 1).key(0)).fill(open.segment());
                assertThat(open.seal()).isEqualTo(SealOutcome.DROPPED);
                open.close();
                assertThat(staged()).as("left behind").isEqualTo(1);
                try (TestProcess second = TestProcess.start(
                        "serve", Integer.toString(port), folder.path().toString())) {
                    second.line();
                    TestBlocks.await("it is found", () -> cache.remoteStats().sharedMemory());
                    assertThat(staged()).as("removed by the next one").isZero();
                    long before = cache.remoteStats().staged();
                    BlockChain chain = TestBlocks.stored(cache, 2, 10);
                    assertThat(TestBlocks.verified(cache, chain)).isEqualTo(10);
                    assertThat(cache.remoteStats().staged() - before).isEqualTo(10);
                    assertThat(staged()).isEqualTo(1);
                    second.kill();
                }
            }
        }
    }

    private static void kill(TestProcess testProcess) {
        try {
            testProcess.kill();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void givenATableInPlace_whenPutWithAView_thenViewsAreWhatWasPut() throws IOException {
        try (TieredKvCache store = store(StagingLimits.DEFAULTS);
                TcpEndpoint endpoint = serve(store);
                RemoteKvCache cache = client(endpoint).checked(true).connect()) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.chain(1, 2);
            MemorySegment used;
            try (BlockWriter writer = cache.put(chain, 0, 0, KvCache.NO_WAIT)) {
                writer.copyFrom(contents(chain).getFirst());
                used = writer.segment();
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
            assertThat(used.scope().isAlive()).as("checked").isFalse();
            assertThat(TestBlocks.put(cache, chain, 1)).as("in the same place").isTrue();
            try (BlockTable table = cache.acquire(chain)) {
                assertThat(TestBlocks.verify(table, chain)).isEqualTo(2);
            }
        }
    }
}
