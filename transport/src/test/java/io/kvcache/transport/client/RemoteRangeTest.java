package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The same bytes of many blocks of a server, which has them in memory or on disk.
final class RemoteRangeTest {

    private static final int BLOCKS = 40;

    /// 64 KiB of 1 MiB.
    private static final ByteRange LAYER =
            TestBlocks.SPACE.parts().getFirst().shape().layerSlice(5);

    @TempDir
    private Path folder = Path.of("");

    private TieredKvCache store() {
        TieredKvCache store = TieredKvCache.builder()
                .hostBytes(96 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("disk"), 256 << 20)
                .build();
        store.register(TestBlocks.SPACE);
        assertThat(store.awaitRecovered(TestBlocks.PATIENCE)).isTrue();
        return store;
    }

    /// Opens a store that has some blocks of a chain in memory, and all on disk.
    private TieredKvCache store(BlockChain chain, int resident) {
        try (TieredKvCache store = store()) {
            for (int index = 0; index < chain.length(); index++) {
                assertThat(TestBlocks.put(store, chain, index)).isTrue();
            }
            assertThat(store.flush(TestBlocks.PATIENCE)).isTrue();
        }
        TieredKvCache store = store();
        try (BlockTable table = store.acquire(chain.prefix(resident), 0, TestBlocks.PATIENCE)) {
            assertThat(table.await(resident, TestBlocks.PATIENCE)).isEqualTo(resident);
        }
        assertThat(store.match(chain)).isEqualTo(new Match(0, resident, chain.length() - resident));
        return store;
    }

    private static List<MemorySegment> targets(int count, long bytes) {
        return Stream.generate(() -> MemorySegment.ofArray(new byte[(int) bytes]))
                .limit(count)
                .toList();
    }

    private static void requireRange(BlockChain chain, int from, int count, List<MemorySegment> into, ByteRange range) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment block = arena.allocate(TestBlocks.BLOCK_BYTES);
            for (int i = 0; i < count; i++) {
                BlockContent.of(chain.key(from + i)).fill(block);
                MemorySegment wanted = block.asSlice(range.offset(), range.bytes());
                assertThat(into.get(i).mismatch(wanted))
                        .as("block %d", from + i)
                        .isEqualTo(-1);
            }
        }
    }

    @Test
    void givenBlocksInMemoryAndOnDisk_whenARangeIsRead_thenOnlyRangesAreMoved() throws IOException {
        BlockChain chain = TestBlocks.chain(1, BLOCKS);
        try (TieredKvCache store = store(chain, 10);
                TcpEndpoint endpoint = LoopbackServers.serve(store);
                RemoteKvCache cache = LoopbackServers.connect(endpoint, TestBlocks.SPACE)) {
            List<MemorySegment> into = targets(BLOCKS + 3, LAYER.bytes());
            assertThat(cache.getRange(chain, 3, LAYER, into, KvCache.NO_WAIT)).isEqualTo(7);
            requireRange(chain, 3, 7, into, LAYER);
            assertThat(cache.getRange(chain, 3, LAYER, into, TestBlocks.PATIENCE))
                    .isEqualTo(BLOCKS - 3);
            requireRange(chain, 3, BLOCKS - 3, into, LAYER);
            assertThat(store.diskStats().getFirst().partsRead()).isEqualTo(BLOCKS - 10);
            assertThat(store.match(chain)).isEqualTo(new Match(0, 10, BLOCKS - 10));
            assertThat(endpoint.stats().bytesOut()).isEqualTo((7 + BLOCKS - 3) * LAYER.bytes());
            assertThat(endpoint.stats().leases().granted()).isZero();
            TestBlocks.await("nothing waits", () -> endpoint.stats().waiting() == 0);
            assertThat(store.stats().openTables()).isZero();
        }
    }

    /// 16 MiB is sixteen whole blocks: 40 take three requests.
    @Test
    void givenMoreThanARequestTakes_whenRead_thenByAsManyRequestsAsNeeded() throws IOException {
        BlockChain chain = TestBlocks.chain(1, BLOCKS);
        ByteRange whole = new ByteRange(0, TestBlocks.BLOCK_BYTES);
        try (TieredKvCache store = store(chain, BLOCKS);
                TcpEndpoint endpoint = LoopbackServers.serve(store);
                RemoteKvCache cache = LoopbackServers.connect(endpoint, TestBlocks.SPACE)) {
            long before = endpoint.stats().requests();
            List<MemorySegment> into = IntStream.range(0, BLOCKS)
                    .mapToObj(i -> MemorySegment.ofArray(new long[TestBlocks.BLOCK_BYTES / 8 + 1]))
                    .toList();
            assertThat(cache.getRange(chain, 0, whole, into, KvCache.NO_WAIT)).isEqualTo(BLOCKS);
            List<MemorySegment> exact =
                    into.stream().map(each -> each.asSlice(0, whole.bytes())).toList();
            requireRange(chain, 0, BLOCKS, exact, whole);
            // HELLO, AUTH and CHAIN of the connection for blocks, and three requests
            assertThat(endpoint.stats().requests() - before).isEqualTo(6);
        }
    }

    @Test
    void givenARangeThatChangesOnItsWay_whenReceived_thenTheRunEndsBeforeIt() {
        BlockChain chain = TestBlocks.chain(1, 6);
        try (TieredKvCache store = store(chain, 6);
                Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime);
                RemoteKvCache cache = new RemoteKvCacheBuilder(
                                new InProcessServer(endpoint, (_, frame) -> spoilThird(frame)))
                        .requestTimeout(TestBlocks.PATIENCE)
                        .strict(true)
                        .connect()) {
            cache.register(TestBlocks.SPACE);
            List<MemorySegment> into = targets(6, LAYER.bytes());
            assertThat(cache.getRange(chain, 1, LAYER, into, KvCache.NO_WAIT)).isEqualTo(2);
            requireRange(chain, 1, 2, into, LAYER);
            assertThat(into.subList(2, 6))
                    .allSatisfy(each -> assertThat(each.mismatch(MemorySegment.ofArray(new byte[(int) LAYER.bytes()])))
                            .isEqualTo(-1));
            assertThat(cache.remoteStats().corrupt()).isEqualTo(1);
        }
    }

    private static InProcessServer.MutatedFrame spoilThird(byte[] frame) {
        boolean third = frame[4] == MessageType.DATA.code() && frame[FrameHeader.BYTES] == 3;
        if (third) {
            frame[frame.length - 100]++;
        }
        return new InProcessServer.MutatedFrame(frame, false);
    }

    @Test
    void givenBlocksThatAreNotThere_whenReadWithATimeout_thenNoneAndAtOnce() throws IOException {
        try (TieredKvCache store = store();
                TcpEndpoint endpoint = LoopbackServers.serve(store);
                RemoteKvCache cache = LoopbackServers.connect(endpoint, TestBlocks.SPACE)) {
            BlockChain chain = TestBlocks.chain(1, 3);
            List<MemorySegment> into = targets(3, LAYER.bytes());
            assertThat(cache.getRange(chain, 0, LAYER, into, Duration.ofDays(1)))
                    .isZero();
            assertThat(cache.getRange(chain, 3, LAYER, into, Duration.ofDays(1)))
                    .isZero();
            assertThatThrownBy(() ->
                            cache.getRange(chain, 0, new ByteRange(1, TestBlocks.BLOCK_BYTES), into, KvCache.NO_WAIT))
                    .isInstanceOf(IndexOutOfBoundsException.class)
                    .hasMessageContaining("allowed: 0 to " + TestBlocks.BLOCK_BYTES);
        }
    }
}
