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

    private final FakeCuda standIn = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final Logger log = Logger.getLogger(FixedMemory.class.getName());

    @SuppressWarnings("NullAway.Init") // given by JUnit
    EngineWaitsTest() {}

    @BeforeEach
    void asOnAGpu() {
        assumeThat(standIn.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        standIn.pageableWaits(true);
        log.setLevel(Level.OFF);
    }

    @AfterEach
    void end() {
        log.setLevel(null);
        standIn.release();
        if (standIn.canHold()) {
            assertThat(standIn.left()).isEmpty();
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
    private EngineDoor door(TieredKvCache cache, boolean kernel) {
        DoorThreshold threshold = new DoorThreshold(kernel ? new CopyThreshold(1 << 20) : CopyThreshold.COPIES);
        return EngineDoor.open(cache, standIn::open, Map.of(PoolOfTwo.NAME, PoolOfTwo.SPACE), path(), threshold);
    }

    private static ByteBuffer twoBlocks() {
        return EngineClient.blocks(0, 0, 2, -1, 3, 17, 1, 38);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenADeviceThatIsHeld_whenBlocksAreStored_thenTheCopyIsQueuedAndTheEngineAnswered(boolean kernel)
            throws IOException {
        try (TieredKvCache cache = cache();
                EngineDoor door = door(cache, kernel);
                EngineHere engine = new EngineHere(standIn, path(), arena)) {
            engine.introduce();
            engine.fill();
            standIn.hold();
            ByteBuffer stored = engine.client().ask(Wire.STORE, twoBlocks());
            assertThat(stored.getLong()).isEqualTo(2);
            assertThat(door.engines()).isEqualTo(1);
            standIn.release();
            assertThat(engine.client().seal(stored.getLong())).isEqualTo(2);
        }
        assertThat(standIn.calls("cuLaunchKernel")).isEqualTo(kernel ? 1 : 0);
        assertThat(standIn.calls("cuMemHostUnregister")).isEqualTo(kernel ? 2 : 1);
    }

    @Test
    void givenMemoryThatMayNotBeFixed_whenBlocksAreStored_thenTheyAreAllTheSame() throws IOException {
        standIn.failCall("cuMemHostRegister_v2", 1, 304);
        try (TieredKvCache cache = cache();
                EngineDoor door = door(cache, true); // which it may not, then
                EngineHere engine = new EngineHere(standIn, path(), arena)) {
            engine.introduce();
            engine.fill();
            ByteBuffer stored = engine.client().ask(Wire.STORE, twoBlocks());
            assertThat(stored.getLong()).isEqualTo(2);
            assertThat(engine.client().seal(stored.getLong())).isEqualTo(2);
            assertThat(door.engines()).isEqualTo(1);
            assertThat(cache.match(BlockChain.of(PoolOfTwo.SPACE, PoolOfTwo.tokens(2)))
                            .blocks())
                    .isEqualTo(2);
        }
    }

    @Test
    void givenAnEventThatIsNotReached_whenACopyCannotWaitForIt_thenItIsRefusedAndNothingIsBegun() {
        DeviceDriver driver = standIn.open();
        DeviceSpan slab = driver.allocate(2 * PoolOfTwo.LAYER_BYTES);
        EnginePool pool = new EnginePool(layout(slab), PoolOfTwo.SPACE);
        PieceWay way = new PieceWay(driver, false, new DoorThreshold());
        Transfers transfers = new Transfers(driver, way, TimeUnit.MILLISECONDS.toNanos(1));
        DeviceStream engine = driver.openStream(Priority.NORMAL);
        DeviceEvent event = driver.openEvent();
        standIn.hold();
        engine.record(event);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> transfers.store(pool, List.of(), new int[0][], event))
                .withMessageContaining("1 ms");
        standIn.release();
        assertThat(event.await(LONG_NANOS)).isTrue();
        assertThat(transfers.store(pool, List.of(), new int[0][], event)).isZero();
        assertThat(transfers.drain(LONG_NANOS)).isTrue();
        transfers.close();
        transfers.abandon();
        event.close();
        engine.close();
        driver.free(slab);
        driver.close();
    }

    private static PagedLayout layout(DeviceSpan slab) {
        return new PagedLayout(
                List.of(slab.slice(0, PoolOfTwo.LAYER_BYTES), slab.slice(PoolOfTwo.LAYER_BYTES, PoolOfTwo.LAYER_BYTES)),
                PoolOfTwo.SIDES,
                (long) PoolOfTwo.PAGES * PoolOfTwo.PIECE,
                PoolOfTwo.PAGES,
                PoolOfTwo.PIECE,
                PoolOfTwo.PIECE,
                PoolOfTwo.PAGES_PER_BLOCK);
    }
}
