package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.ConditionWait.awaitTrue;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.kvcache.core.BlockTable;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.cuda.IpcExporterProcess;
import io.kvcache.gpu.cuda.LeakCheckingDrivers;
import io.kvcache.gpu.cuda.OpenFileDescriptors;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;

/// Every call of the driver that a door makes fails once, each in turn, while an engine stores and
/// loads. One layer of its pool is another process's memory, by a token, the other is told of by a
/// descriptor.
final class EngineFaultsTest {

    /// Codes, and whether the engine's pages are moved by a kernel.
    static final List<Arguments> FAULTS = List.of(
                    arguments(46, false),
                    arguments(2, true),
                    arguments(2, false),
                    arguments(205, false),
                    arguments(999, false),
                    arguments(46, true))
            .subList(0, Repetitions.usualOrFull(2, 6));

    private static final int MIN_CALLS = 40;
    private static final int LATE_MICROS = 200;
    private static final byte POISON = 0x5A;
    private static final int[] STORED = {3, 17, 1, 38};
    private static final int[] LOADED = {8, 10, 21, 19};
    private static final List<Integer> TARGETS = List.of(8, 10, 21, 19);

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final LeakCheckingDrivers drivers = new LeakCheckingDrivers(fakeCuda);
    private final Arena arena = Arena.ofShared();

    @SuppressWarnings("NullAway.Init") // given by JUnit
    EngineFaultsTest() {}

    @AfterEach
    void end() {
        FakeCuda.reset();
        if (fakeCuda.canHold()) {
            assertThat(fakeCuda.left()).isEmpty();
        }
        arena.close();
    }

    /// Out of memory, a device that fell off the bus, a stale token, something nobody knows.
    @ParameterizedTest
    @FieldSource("FAULTS")
    @Tag("slow")
    void givenAFaultAtEachCallInTurn_whenAnEngineIsServed_thenNeverAWrongByteNorALeak(int code, boolean kernel)
            throws Exception {
        long descriptors = OpenFileDescriptors.open();
        FaultInjection.assumePossible(fakeCuda);
        try (IpcExporterProcess peer = new IpcExporterProcess(TwoLayerPool.OFFSET + TwoLayerPool.LAYER_BYTES)) {
            String what = kernel ? "engine door by kernel" : "engine door";
            FaultInjection.inject(fakeCuda, what, code, MIN_CALLS, new EngineWork(peer, kernel));
        }
        if (kernel) {
            assertThat(fakeCuda.calls("cuLaunchKernel")).isPositive();
        }
        FakeCuda.reset();
        assertThat(OpenFileDescriptors.open()).isLessThan(descriptors + MIN_CALLS);
    }

    /// Something asked of the door.
    private interface EngineRequest<T> {

        T ask() throws IOException;
    }

    /// An engine asks once more what was refused, as the device may have been short of something.
    private static <T> T again(EngineRequest<T> engineRequest) throws IOException {
        try {
            return engineRequest.ask();
        } catch (EngineClient.Refused refused) {
            assertThat(refused).hasMessageMatching("(?s).*(cu[A-Z]|drain).*");
            return engineRequest.ask();
        }
    }

    /// What the engine was told.
    private record EngineReplies(long sealed, long loaded) {}

    private final class EngineWork implements FaultInjection.FaultedWork {

        private final IpcExporterProcess peer;
        private final EngineCopyThreshold threshold;
        private final MemorySegment[] layers = new MemorySegment[TwoLayerPool.LAYERS];
        private final MemorySegment[] seen = new MemorySegment[TwoLayerPool.LAYERS];
        private int[] tokens = {};

        /// @param kernel whether pieces go by a kernel
        EngineWork(IpcExporterProcess peer, boolean kernel) {
            this.peer = peer;
            threshold = new EngineCopyThreshold(kernel ? new CopyThreshold(1 << 20) : CopyThreshold.ALWAYS_COPY);
            for (int layer = 0; layer < TwoLayerPool.LAYERS; layer++) {
                layers[layer] = arena.allocate(TwoLayerPool.LAYER_BYTES, 8);
                seen[layer] = arena.allocate(TwoLayerPool.LAYER_BYTES, 8);
            }
        }

        @Override
        public boolean attempt(int nth, Runnable begin) throws IOException {
            fakeCuda.delay(LATE_MICROS);
            tokens = IntStream.range(0, 2 * TwoLayerPool.BLOCK_TOKENS)
                    .map(i -> nth * 100 + i)
                    .toArray();
            try (TwoProcessPool pool = new TwoProcessPool(fakeCuda, peer);
                    TieredKvCache cache = TieredKvCache.builder()
                            .hostBytes(64 << 20)
                            .prefaultInBackground(false)
                            .failOnLeak(true)
                            .build();
                    EngineIpcServer door = EngineIpcServer.open(
                            cache,
                            null,
                            drivers::open,
                            Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE),
                            folder.resolve("door"),
                            threshold)) {
                fill(nth);
                pool.write(layers);
                long before = fakeCuda.injected();
                begin.run();
                EngineReplies engineReplies = serve(pool, before);
                awaitTrue(() -> door.engineCount() == 0);
                fakeCuda.failCall("", 0, 0);
                pool.read(seen);
                drivers.requireNoLeaks();
                return verify(cache, engineReplies, fakeCuda.injected() == before);
            }
        }

        private void fill(int nth) {
            for (int layer = 0; layer < TwoLayerPool.LAYERS; layer++) {
                new BlockContent(2L * nth + layer).fill(layers[layer]);
                for (int page : LOADED) {
                    piece(layers[layer], 0, page).fill(POISON);
                    piece(layers[layer], 1, page).fill(POISON);
                }
            }
        }

        /// Stores two blocks and loads them to other pages, as far as the door lets it.
        ///
        /// @param before faults that there were
        private EngineReplies serve(TwoProcessPool pool, long before) {
            long sealed = 0;
            long loaded = 0;
            try (EngineClient client = new EngineClient(folder.resolve("door"))) {
                again(() -> client.hello(pool.uuid()));
                int byToken = again(() -> client.region(peer.memory()));
                int byDescriptor = again(() -> client.region(pool.descriptor(), pool.descriptorBytes()));
                int event = again(() -> client.event(peer.event()));
                again(() -> client.ask(EngineCodec.POOL, TwoLayerPool.encodeLayers(byToken, byDescriptor)));
                client.ask(EngineCodec.CHAIN, EngineClient.chain(5, 0, 0, tokens));
                ByteBuffer stored =
                        again(() -> client.ask(EngineCodec.STORE, EngineClient.blocks(5, 0, 2, event, STORED)));
                assertThat(stored.getLong()).isEqualTo(2);
                sealed = client.seal(stored.getLong());
                loaded = again(() -> client.ask(EngineCodec.LOAD, EngineClient.blocks(5, 0, 2, event, LOADED)))
                        .getLong();
            } catch (IOException | EngineClient.Refused over) {
                assertThat(fakeCuda.injected())
                        .as("why the door let go: %s", over)
                        .isGreaterThan(before);
            }
            return new EngineReplies(sealed, loaded);
        }

        private boolean verify(TieredKvCache cache, EngineReplies engineReplies, boolean noFault) {
            BlockChain chain = BlockChain.of(TwoLayerPool.SPACE, tokens);
            int present = cache.match(chain).blocks();
            assertThat(present).as("what was sealed is there").isEqualTo((int) engineReplies.sealed);
            try (BlockTable table = cache.acquire(chain)) {
                for (int i = 0; i < table.readyBlocks(); i++) {
                    MemorySegment right = TwoLayerPool.block(arena, layers, STORED[2 * i], STORED[2 * i + 1]);
                    assertThat(table.segment(i).mismatch(right))
                            .as("block %d", i)
                            .isEqualTo(-1);
                }
            }
            boolean all = true;
            for (int layer = 0; layer < TwoLayerPool.LAYERS; layer++) {
                for (int side = 0; side < TwoLayerPool.SIDES; side++) {
                    all &= verify(layer, side);
                }
            }
            assertThat(all || !noFault).as("without a fault all is loaded").isTrue();
            return all && engineReplies.loaded == 2 && engineReplies.sealed == 2;
        }

        /// Pages that were to be loaded are as they were or right, all others as they were.
        private boolean verify(int layer, int side) {
            boolean all = true;
            for (int page = 0; page < TwoLayerPool.PAGES; page++) {
                MemorySegment found = piece(seen[layer], side, page);
                int at = TARGETS.indexOf(page);
                if (found.mismatch(piece(layers[layer], side, page)) == -1) {
                    all &= at < 0;
                } else {
                    assertThat(at).as("page %d was written to", page).isNotNegative();
                    assertThat(found.mismatch(piece(layers[layer], side, STORED[at])))
                            .isEqualTo(-1);
                }
            }
            return all;
        }

        private static MemorySegment piece(MemorySegment layer, int side, int page) {
            return layer.asSlice(((long) side * TwoLayerPool.PAGES + page) * TwoLayerPool.PIECE, TwoLayerPool.PIECE);
        }
    }
}
