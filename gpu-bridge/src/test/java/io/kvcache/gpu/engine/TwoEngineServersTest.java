package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.ConditionWait.awaitTrue;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockTable;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Two devices of one process, each with a store, a tier and a door: blocks of the same keys and of
/// other bytes, so that whatever went to the wrong device would show.
final class TwoEngineServersTest {

    private static final int[] STORED = {3, 17, 1, 38};
    private static final int[] LOADED = {8, 10, 21, 19};
    private static final long TIER_BYTES = 16L << 20;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset().withTwoDevices();
    private final Arena arena = Arena.ofShared();

    @SuppressWarnings("NullAway.Init") // given by JUnit
    TwoEngineServersTest() {}

    @AfterEach
    void close() {
        assertThat(fakeCuda.left()).isEmpty();
        FakeCuda.reset();
        arena.close();
    }

    private static TieredKvCache store(CudaTier tier) {
        return TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .tier(tier)
                .build();
    }

    private EngineIpcServer door(TieredKvCache cache, int device, CopyThreshold threshold) {
        return EngineIpcServer.open(
                cache,
                () -> fakeCuda.open(device),
                Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE),
                path(device),
                new EngineCopyThreshold(threshold));
    }

    private Path path(int device) {
        return folder.resolve("door " + device);
    }

    /// An engine on a device, its pool with bytes of its own. Both layers lie at one place.
    private final class Engine implements AutoCloseable {

        private final InProcessEngine here;
        private final MemorySegment content = arena.allocate(TwoLayerPool.OFFSET + TwoLayerPool.LAYER_BYTES, 8);

        Engine(int device) throws IOException {
            here = new InProcessEngine(fakeCuda.open(device), path(device), arena, content.byteSize());
            new BlockContent(100 + device).fill(content);
            here.write(content);
            here.sendPoolAndChain();
        }

        long store() throws IOException {
            ByteBuffer stored = here.client().ask(EngineCodec.STORE, EngineClient.blocks(0, 0, 2, -1, STORED));
            assertThat(stored.getLong()).isEqualTo(2);
            return stored.getLong();
        }

        void load() throws IOException {
            assertThat(here.client()
                            .ask(EngineCodec.LOAD, EngineClient.blocks(0, 0, 2, -1, LOADED))
                            .getLong())
                    .isEqualTo(2);
            for (int i = 0; i < LOADED.length; i++) {
                for (int side = 0; side < TwoLayerPool.SIDES; side++) {
                    MemorySegment.copy(content, at(side, STORED[i]), content, at(side, LOADED[i]), TwoLayerPool.PIECE);
                }
            }
        }

        private static long at(int side, int page) {
            return TwoLayerPool.OFFSET + ((long) side * TwoLayerPool.PAGES + page) * TwoLayerPool.PIECE;
        }

        MemorySegment block(int index) {
            MemorySegment layer = content.asSlice(TwoLayerPool.OFFSET);
            return TwoLayerPool.block(
                    arena, new MemorySegment[] {layer, layer}, STORED[2 * index], STORED[2 * index + 1]);
        }

        void requireLoaded(EngineIpcServer door) {
            here.client().close(); // the door ends its copies then
            awaitTrue(() -> door.engineCount() == 0);
            assertThat(here.read(content.byteSize()).mismatch(content)).isEqualTo(-1);
        }

        @Override
        public void close() {
            here.close();
        }
    }

    private static BlockChain chain() {
        return BlockChain.of(TwoLayerPool.SPACE, TwoLayerPool.tokens(2));
    }

    private static void requireStored(TieredKvCache cache, Engine engine) {
        try (BlockTable table = cache.acquire(chain())) {
            assertThat(table.readyBlocks()).isEqualTo(2);
            for (int i = 0; i < 2; i++) {
                assertThat(table.segment(i).mismatch(engine.block(i))).isEqualTo(-1);
            }
        }
    }

    private void requireOnDevice(int device, CudaTier tier, Engine engine) {
        try (DeviceBlockTable table = tier.acquire(chain(), 0)) {
            assertThat(table.endBlock()).as("on device %d", device).isEqualTo(2);
            for (int i = 0; i < 2; i++) {
                MemorySegment back = arena.allocate(TwoLayerPool.BLOCK_BYTES, 4096);
                DeviceSpan span = new DeviceSpan(table.address(i), TwoLayerPool.BLOCK_BYTES);
                DeviceDriver driver = fakeCuda.open(device);
                driver.adopt(span);
                try (DeviceStream stream = driver.openStream(Priority.NORMAL);
                        DeviceEvent event = driver.openEvent()) {
                    stream.copyToHost(span.address(), back);
                    stream.record(event);
                    assertThat(event.await(LONG_NANOS)).isTrue();
                }
                driver.disown(span);
                driver.close();
                assertThat(back.mismatch(engine.block(i))).isEqualTo(-1);
            }
        }
    }

    /// Pieces by copies, and by kernels.
    @ParameterizedTest
    @ValueSource(ints = {0, 1 << 20})
    void givenAStoreOnEach_whenEnginesStoreAndLoadInTurn_thenEachHasItsOwnBytes(int threshold) throws IOException {
        CopyThreshold copied = new CopyThreshold(threshold);
        CudaTier first = CudaTier.open(0, TIER_BYTES);
        CudaTier second = CudaTier.open(1, TIER_BYTES);
        try (TieredKvCache one = store(first);
                TieredKvCache other = store(second);
                EngineIpcServer oneDoor = door(one, 0, copied);
                EngineIpcServer otherDoor = door(other, 1, copied);
                Engine oneEngine = new Engine(0);
                Engine otherEngine = new Engine(1)) {
            long oneStore = oneEngine.store();
            long otherStore = otherEngine.store();
            assertThat(otherEngine.here.client().seal(otherStore)).isEqualTo(2);
            assertThat(oneEngine.here.client().seal(oneStore)).isEqualTo(2);
            requireStored(one, oneEngine);
            requireStored(other, otherEngine);
            assertThat(one.flush(Duration.ofNanos(LONG_NANOS))).as("durable").isFalse(); // though written
            assertThat(other.flush(Duration.ofNanos(LONG_NANOS))).as("durable").isFalse(); // though written
            requireOnDevice(0, first, oneEngine);
            requireOnDevice(1, second, otherEngine);
            otherEngine.load();
            oneEngine.load();
            oneEngine.requireLoaded(oneDoor);
            otherEngine.requireLoaded(otherDoor);
        }
    }

    /// The tier's device registers the memory, and the door's knows it too.
    @Test
    void givenAStoreWithATierOnOneAndADoorOnTheOther_whenServed_thenItsMemoryIsRegisteredOnceAndTheBytesAreRight()
            throws IOException {
        CudaTier tier = CudaTier.open(0, TIER_BYTES);
        try (TieredKvCache cache = store(tier);
                EngineIpcServer door = door(cache, 1, CopyThreshold.ALWAYS_COPY);
                Engine engine = new Engine(1)) {
            assertThat(engine.here.client().seal(engine.store())).isEqualTo(2);
            requireStored(cache, engine);
            assertThat(cache.flush(Duration.ofNanos(LONG_NANOS))).as("durable").isFalse(); // though written
            requireOnDevice(0, tier, engine);
            engine.load();
            engine.requireLoaded(door);
            if (fakeCuda.canHold()) {
                assertThat(fakeCuda.calls("cuMemHostRegister_v2")).isEqualTo(1);
            }
        }
    }

    @Test
    void givenAnEngineOfOneDevice_whenItComesToTheOthersDoor_thenItIsToldWhichDeviceThatIsOf() throws IOException {
        try (TieredKvCache cache = store(CudaTier.open(1, TIER_BYTES));
                EngineIpcServer _ = door(cache, 1, CopyThreshold.ALWAYS_COPY);
                InProcessEngine astray = new InProcessEngine(fakeCuda.open(0), path(1), arena, 1)) {
            assertThatExceptionOfType(EngineClient.Refused.class)
                    .isThrownBy(() -> astray.client().hello(astray.uuid()))
                    .withMessageContaining("the engine has device " + astray.uuid() + ", this door ");
        }
    }

    /// An engine that says it has the door's device, and tells of memory of another.
    @Test
    void givenMemoryOfTheOtherDevice_whenADoorIsToldOfIt_thenItIsOutOfReachAndTheDoorServesOn() throws IOException {
        assumeThat(fakeCuda.canHold()).as("devices without a way to each other").isTrue();
        try (TieredKvCache cache = store(CudaTier.open(1, TIER_BYTES));
                EngineIpcServer door = door(cache, 1, CopyThreshold.ALWAYS_COPY);
                InProcessEngine astray = new InProcessEngine(fakeCuda.open(0), path(1), arena, 1);
                Engine right = new Engine(1)) {
            astray.client().hello(right.here.uuid());
            assertThatExceptionOfType(EngineClient.Refused.class)
                    .isThrownBy(() -> astray.client()
                            .region(astray.descriptor(), astray.pages().bytes()))
                    .withMessageContaining("NOT_REACHABLE");
            astray.client().region(right.here.descriptor(), right.here.pages().bytes()); // it is none the worse
            assertThat(right.here.client().seal(right.store())).isEqualTo(2);
            requireStored(cache, right);
            right.load();
            astray.client().close();
            right.requireLoaded(door);
        }
    }
}
