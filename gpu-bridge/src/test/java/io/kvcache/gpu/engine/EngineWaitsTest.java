package io.kvcache.gpu.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.gpu.paging.PagedLayout;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Nobody at the door waits inside the driver: with memory that is not registered, calls for copies return
/// when the copy is made.
final class EngineWaitsTest {

    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final Logger log = Logger.getLogger(EngineSession.class.getName());

    @SuppressWarnings("NullAway.Init") // given by JUnit
    EngineWaitsTest() {}

    @BeforeEach
    void asOnAGpu() {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        fakeCuda.pageableWaits(true);
        log.setLevel(Level.OFF);
    }

    @AfterEach
    void end() {
        log.setLevel(null);
        fakeCuda.release();
        if (fakeCuda.canHold()) {
            assertThat(fakeCuda.left()).isEmpty();
        }
        arena.close();
    }

    private Path path() {
        return folder.resolve("door");
    }

    private static TieredKvCache cache() {
        return TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .build();
    }

    /// @param kernel whether pieces go by a kernel
    private EngineIpcServer door(TieredKvCache cache, boolean kernel) {
        EngineCopyThreshold threshold =
                new EngineCopyThreshold(kernel ? new CopyThreshold(1 << 20) : CopyThreshold.ALWAYS_COPY);
        return EngineIpcServer.open(
                cache, null, fakeCuda::open, Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE), path(), threshold);
    }

    private static ByteBuffer twoBlocks() {
        return EngineClient.blocks(0, 0, 2, -1, 3, 17, 1, 38);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenADeviceThatIsHeld_whenBlocksAreStored_thenTheCopyIsQueuedAndTheEngineAnswered(boolean kernel)
            throws IOException {
        try (TieredKvCache cache = cache();
                EngineIpcServer door = door(cache, kernel);
                InProcessEngine engine = new InProcessEngine(fakeCuda, path(), arena)) {
            engine.sendPoolAndChain();
            engine.fill();
            fakeCuda.hold();
            ByteBuffer stored = engine.client().ask(EngineCodec.STORE, twoBlocks());
            assertThat(stored.getLong()).isEqualTo(2);
            assertThat(door.engineCount()).isEqualTo(1);
            fakeCuda.release();
            assertThat(engine.client().seal(stored.getLong())).isEqualTo(2);
        }
        assertThat(fakeCuda.calls("cuLaunchKernel")).isEqualTo(kernel ? 1 : 0);
        assertThat(fakeCuda.calls("cuMemHostUnregister")).isEqualTo(kernel ? 2 : 1);
    }

    @Test
    void givenMemoryThatMayNotBeFixed_whenBlocksAreStored_thenTheyAreAllTheSame() throws IOException {
        fakeCuda.failCall("cuMemHostRegister_v2", 1, 304);
        try (TieredKvCache cache = cache();
                EngineIpcServer door = door(cache, true); // which it may not, then
                InProcessEngine engine = new InProcessEngine(fakeCuda, path(), arena)) {
            engine.sendPoolAndChain();
            engine.fill();
            ByteBuffer stored = engine.client().ask(EngineCodec.STORE, twoBlocks());
            assertThat(stored.getLong()).isEqualTo(2);
            assertThat(engine.client().seal(stored.getLong())).isEqualTo(2);
            assertThat(door.engineCount()).isEqualTo(1);
            assertThat(cache.match(BlockChain.of(TwoLayerPool.SPACE, TwoLayerPool.tokens(2)))
                            .blocks())
                    .isEqualTo(2);
        }
    }

    @Test
    void givenAnEventThatIsNotReached_whenACopyCannotWaitForIt_thenItIsRefusedAndNothingIsBegun() {
        DeviceDriver driver = fakeCuda.open();
        DeviceSpan slab = driver.allocate(2 * TwoLayerPool.LAYER_BYTES);
        PagedLayout pool = layout(slab);
        TransferQueue transferQueue =
                new TransferQueue(driver, false, new EngineCopyThreshold(), TimeUnit.MILLISECONDS.toNanos(1));
        DeviceStream engine = driver.openStream(Priority.NORMAL);
        DeviceEvent event = driver.openEvent();
        fakeCuda.hold();
        engine.record(event);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> transferQueue.store(pool, List.of(), new int[0][], null, event))
                .withMessageContaining("1 ms");
        fakeCuda.release();
        assertThat(event.await(LONG_NANOS)).isTrue();
        assertThat(transferQueue.store(pool, List.of(), new int[0][], null, event))
                .isZero();
        assertThat(transferQueue.drain(LONG_NANOS)).isTrue();
        transferQueue.close();
        transferQueue.abandon();
        event.close();
        engine.close();
        driver.free(slab);
        driver.close();
    }

    private static PagedLayout layout(DeviceSpan slab) {
        return new PagedLayout(
                List.of(
                        slab.slice(0, TwoLayerPool.LAYER_BYTES),
                        slab.slice(TwoLayerPool.LAYER_BYTES, TwoLayerPool.LAYER_BYTES)),
                TwoLayerPool.SIDES,
                (long) TwoLayerPool.PAGES * TwoLayerPool.PIECE,
                TwoLayerPool.PAGES,
                TwoLayerPool.PIECE,
                TwoLayerPool.PIECE,
                TwoLayerPool.PAGES_PER_BLOCK);
    }
}
