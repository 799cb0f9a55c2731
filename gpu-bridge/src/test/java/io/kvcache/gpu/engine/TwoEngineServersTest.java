package io.kvcache.gpu.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.BlockTable;
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
                null,
                () -> fakeCuda.open(device),
                Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE),
                path(device),
                new EngineCopyThreshold(threshold));
    }

    private PooledEngine engine(int device) throws IOException {
        return new PooledEngine(fakeCuda.open(device), path(device), arena, 100 + device);
    }

    private Path path(int device) {
        return folder.resolve("door " + device);
    }

    private static BlockChain chain() {
        return BlockChain.of(TwoLayerPool.SPACE, TwoLayerPool.tokens(2));
    }

    private static void requireStored(TieredKvCache cache, PooledEngine engine) {
        try (BlockTable table = cache.acquire(chain())) {
            assertThat(table.readyBlocks()).isEqualTo(2);
            for (int i = 0; i < 2; i++) {
                assertThat(table.segment(i).mismatch(engine.block(i))).isEqualTo(-1);
            }
        }
    }

    private void requireOnDevice(int device, CudaTier tier, PooledEngine engine) {
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
                PooledEngine oneEngine = engine(0);
                PooledEngine otherEngine = engine(1)) {
            long oneStore = oneEngine.store();
            long otherStore = otherEngine.store();
            assertThat(otherEngine.client().seal(otherStore)).isEqualTo(2);
            assertThat(oneEngine.client().seal(oneStore)).isEqualTo(2);
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
                PooledEngine engine = engine(1)) {
            assertThat(engine.client().seal(engine.store())).isEqualTo(2);
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
                PooledEngine right = engine(1)) {
            astray.client().hello(right.engine().uuid());
            assertThatExceptionOfType(EngineClient.Refused.class)
                    .isThrownBy(() -> astray.client()
                            .region(astray.descriptor(), astray.pages().bytes()))
                    .withMessageContaining("NOT_REACHABLE");
            astray.client()
                    .region(right.engine().descriptor(), right.engine().pages().bytes()); // it is none the worse
            assertThat(right.client().seal(right.store())).isEqualTo(2);
            requireStored(cache, right);
            right.load();
            astray.client().close();
            right.requireLoaded(door);
        }
    }
}
