package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.net.DisconnectReason;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Bytes that are at hand, stored over TCP at servers of both kinds.
@Timeout(300)
@Tag("slow")
final class RemoteWritesTest {

    private static final int BLOCKS = 24;
    private static final Namespace OBJECTS = Namespace.objects("things", "");
    private static final byte[] KEY = "key".getBytes(StandardCharsets.UTF_8);

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(96 << 20)
            .checkSegments(true)
            .failOnLeak(true)
            .prefaultInBackground(false)
            .build();
    private final Arena arena = Arena.ofConfined();
    private final TcpEndpoint endpoint = LoopbackServers.serve(store);
    private final BlockChain chain = TestBlocks.chain(1, BLOCKS);

    private RemoteKvCache connect() {
        return LoopbackServers.connect(endpoint, TestBlocks.SPACE, OBJECTS);
    }

    /// As if the server were older than PUT.

    @BeforeEach
    void register() {
        store.register(TestBlocks.SPACE);
    }

    @AfterEach
    void nothingIsLeft() throws IOException {
        endpoint.close();
        assertThat(store.stats().openTables()).isZero();
        store.validate();
        store.close();
        arena.close();
    }

    private List<MemorySegment> blocks(boolean heap) {
        List<MemorySegment> blocks = new ArrayList<>();
        for (int index = 0; index < BLOCKS; index++) {
            BlockContent content = BlockContent.of(chain.key(index));
            MemorySegment block =
                    heap ? content.toHeapSegment(TestBlocks.BLOCK_BYTES) : arena.allocate(TestBlocks.BLOCK_BYTES);
            if (!heap) {
                content.fill(block);
            }
            blocks.add(block);
        }
        return blocks;
    }

    @Test
    void givenARun_whenStored_thenItTakesNoReservationsAndEveryByteIsThere() {
        for (boolean heap : List.of(false, true)) {
            try (RemoteKvCache cache = connect()) {
                assertThat(cache.putAll(chain, 0, blocks(heap), KvCache.NO_WAIT))
                        .isEqualTo(new PutSummary(BLOCKS, 0, PutOutcome.RESERVED));
                assertThat(TestBlocks.verified(store, chain)).isEqualTo(BLOCKS);
                assertThat(endpoint.stats().reservations().granted()).isZero();
                assertThat(cache.remoteStats().memoryUsed()).isZero();
                assertThat(cache.remoteStats().bytesOut()).isEqualTo((long) BLOCKS * TestBlocks.BLOCK_BYTES);
                cache.drop(chain, 0);
            }
        }
    }

    @Test
    void givenTheBeginningIsThere_whenARunIsStored_thenOnlyTheRestTravels() {
        try (RemoteKvCache cache = connect()) {
            List<MemorySegment> blocks = blocks(false);
            cache.putAll(chain, 0, blocks.subList(0, 20), KvCache.NO_WAIT);
            long before = endpoint.stats().bytesIn();
            assertThat(cache.putAll(chain, 0, blocks, KvCache.NO_WAIT))
                    .isEqualTo(new PutSummary(4, 20, PutOutcome.RESERVED));
            assertThat(endpoint.stats().bytesIn() - before).isEqualTo(4L * TestBlocks.BLOCK_BYTES);
            assertThat(cache.putAll(chain, 0, blocks, KvCache.NO_WAIT))
                    .isEqualTo(new PutSummary(0, BLOCKS, PutOutcome.PRESENT));
            BlockChain other = TestBlocks.chain(3, 2);
            TestBlocks.stored(store, 3, 2);
            assertThat(cache.putAll(other, 0, blocks.subList(0, 2), KvCache.NO_WAIT))
                    .as("nothing travels, not even the chain")
                    .isEqualTo(new PutSummary(0, 2, PutOutcome.PRESENT));
            assertThat(TestBlocks.verified(cache, other)).isEqualTo(2);
            assertThat(endpoint.stats().closed()).containsEntry(DisconnectReason.MALFORMED, 0L);
        }
    }

    @Test
    void givenABlockThatSomebodyWrites_whenARunIsStored_thenItCountsAsThere() {
        try (RemoteKvCache cache = connect()) {
            List<MemorySegment> blocks = blocks(false);
            try (BlockWriter other = store.put(chain, 0, 0, KvCache.NO_WAIT)) {
                assertThat(cache.putAll(chain, 0, blocks, KvCache.NO_WAIT))
                        .isEqualTo(new PutSummary(BLOCKS - 1, 1, PutOutcome.RESERVED));
                assertThat(store.match(chain).blocks()).isZero();
                BlockContent.of(chain.key(0)).fill(other.segment());
                other.seal();
            }
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenKeysOfAnotherNamespace_whenStored_thenTheyAreForeignAtOnce() {
        Namespace other = Namespace.of("other", BlockShape.kv(16, 1, 1024, 16, Dtype.BF16));
        store.register(other);
        BlockChain same = BlockChain.ofKeys(
                other, IntStream.range(0, 2).mapToObj(chain::key).toList());
        assertThat(TestBlocks.put(store, same, 0)).isTrue();
        try (RemoteKvCache cache = connect();
                BlockWriter writer = cache.put(chain, 0, 0, TestBlocks.PATIENCE)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.FOREIGN);
            assertThat(cache.putAll(chain, 0, blocks(false).subList(0, 2), TestBlocks.PATIENCE))
                    .isEqualTo(new PutSummary(0, 0, PutOutcome.FOREIGN));
        }
    }

    @Test
    void givenNoParent_whenARunIsStored_thenNothingIsAndTheConnectionGoesOn() {
        try (RemoteKvCache cache = connect()) {
            List<MemorySegment> blocks = blocks(false);
            assertThat(cache.putAll(chain, 3, blocks.subList(3, BLOCKS), KvCache.NO_WAIT))
                    .isEqualTo(new PutSummary(0, 0, PutOutcome.NO_PARENT));
            assertThat(cache.putAll(chain, 0, blocks, KvCache.NO_WAIT).stored()).isEqualTo(BLOCKS);
            assertThat(endpoint.stats().connections()).isEqualTo(2);
        }
    }

    /// The blocks of a run, whose end goes from the store once, before block 20 is sent.
    private List<MemorySegment> blocksThatGoOnce() {
        List<MemorySegment> blocks = blocks(false);
        AtomicBoolean gone = new AtomicBoolean();
        return new AbstractList<>() {
            @Override
            public MemorySegment get(int index) {
                if (index == 20 && gone.compareAndSet(false, true)) {
                    while (store.match(chain).hostBlocks() < 20) {
                        Thread.onSpinWait();
                    }
                    store.drop(chain, 10);
                }
                return blocks.get(index);
            }

            @Override
            public int size() {
                return blocks.size();
            }
        };
    }

    @Test
    void givenTheLastBlockGoesBeforeTheNextComes_whenARunIsStored_thenBegunAgain() {
        try (RemoteKvCache cache = connect()) {
            assertThat(cache.putAll(chain, 0, blocksThatGoOnce(), KvCache.NO_WAIT))
                    .isEqualTo(new PutSummary(BLOCKS - 10, 10, PutOutcome.RESERVED));
            assertThat(TestBlocks.verified(store, chain)).isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenAStoreThatIsPinned_whenARunIsStored_thenItEndsWhereTheRoomDoesAndWaitsIfItMay() throws Exception {
        BlockChain pinned = TestBlocks.chain(2, 3 * 31);
        int there = 0;
        while (there < pinned.length() && TestBlocks.put(store, pinned, there)) {
            there++;
        }
        try (RemoteKvCache cache = connect()) {
            List<MemorySegment> blocks = blocks(false);
            Thread release;
            try (BlockTable table = store.acquire(pinned)) {
                assertThat(table.readyBlocks()).isEqualTo(there);
                PutSummary full = cache.putAll(chain, 0, blocks, KvCache.NO_WAIT);
                assertThat(full.last()).isEqualTo(PutOutcome.NO_ROOM);
                assertThat(full.accepted()).isLessThan(BLOCKS);
                release = Thread.ofPlatform().unstarted(() -> store.drop(pinned, 0));
            }
            release.start();
            assertThat(cache.putAll(chain, 0, blocks, Duration.ofSeconds(30)).accepted())
                    .isEqualTo(BLOCKS);
            release.join();
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenABlockOfAnotherSize_whenARunIsStored_thenRefusedAndWhatWasBeforeStays() {
        try (RemoteKvCache cache = connect()) {
            List<MemorySegment> blocks = blocks(false);
            blocks.set(20, arena.allocate(100));
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> cache.putAll(chain, 0, blocks, KvCache.NO_WAIT))
                    .withMessageContaining("100");
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(20);
        }
    }

    private static void assertObject(KvCache cache, long bytes) {
        try (ObjectView view = cache.getObject(OBJECTS, KEY)) {
            assertThat(view).isNotNull();
            assertThat(view.bytes()).isEqualTo(bytes);
        }
    }

    @Test
    void givenAnObject_whenStored_thenInOneRequestAndWrittenOver() {
        try (RemoteKvCache cache = connect()) {
            for (MemorySegment value :
                    List.of(arena.allocateFrom("value"), MemorySegment.ofArray(new byte[3 << 20]), arena.allocate(1))) {
                assertThat(cache.storeObject(OBJECTS, KEY, value, KvCache.NO_WAIT))
                        .isTrue();
                assertObject(cache, value.byteSize());
            }
            assertThat(endpoint.stats().reservations().granted()).isZero();
            assertThat(cache.remoteStats().memoryUsed()).isZero();
        }
    }

    @Test
    void givenAServerThatIsGone_whenStored_thenNoRoom() throws Exception {
        try (RemoteKvCache cache = connect()) {
            endpoint.close();
            assertThat(cache.putAll(chain, 0, blocks(false), KvCache.NO_WAIT).last())
                    .isEqualTo(PutOutcome.NO_ROOM);
            assertThat(cache.storeObject(OBJECTS, KEY, arena.allocate(8), KvCache.NO_WAIT))
                    .isFalse();
        }
    }
}
