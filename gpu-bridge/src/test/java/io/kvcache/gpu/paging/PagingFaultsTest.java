package io.kvcache.gpu.paging;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.driver.CopyBatch.CopyDirection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels;
import io.kvcache.gpu.paging.PageCopier.DeviceBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/// Every call of the driver fails once, each in turn, while blocks come to an engine's pages layer
/// by layer, and are moved between pages by copies and by a kernel.
final class PagingFaultsTest {

    static final List<Integer> CODES = List.of(46, 700, 2, 999).subList(0, Repetitions.usualOrFull(2, 4));

    private static final int LAYERS = 2;
    private static final int PAGES = 40;
    private static final int PIECE = 1024;
    private static final int PER_BLOCK = 8;
    private static final int BLOCK = LAYERS * 2 * PER_BLOCK * PIECE;
    private static final int MIN_CALLS = 40;
    private static final int[] FROM = {7, 3, 39, 0, 12, 13, 14, 30};
    private static final int[] TO = {1, 2, 38, 20, 21, 22, 35, 8};
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final MemorySegment content = arena.allocate(BLOCK, 4096);
    private final MemorySegment back = arena.allocate(BLOCK, 4096);

    @AfterEach
    void close() {
        FakeCuda.reset();
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    /// Out of memory, a device that fell off the bus, code that ran where it may not, something
    /// nobody knows.
    @ParameterizedTest
    @FieldSource("CODES")
    @Tag("slow")
    void givenAFaultAtEachCallInTurn_whenBlocksAreMoved_thenNeverAWrongByteNorALeak(int code) throws Exception {
        FaultInjection.assumePossible(fakeCuda);
        fakeCuda.delay(100);
        FaultInjection.inject(fakeCuda, "paging", code, MIN_CALLS, (nth, begin) -> {
            new BlockContent(nth).fill(content);
            back.fill((byte) 0);
            begin.run();
            try {
                DeviceDriver driver = fakeCuda.open();
                try {
                    move(driver);
                } finally {
                    ResourceCounts left = driver.resourceCounts(); // beside the two spans above, which are this test's
                    FaultInjection.close(driver);
                    assertThat(left.streams() + left.events() + left.programs())
                            .as("left open in the driver: %s", left)
                            .isZero();
                }
                return true;
            } catch (DeviceException refused) {
                return false;
            }
        });
    }

    private static void await(DeviceEvent event) {
        assertThat(event.await(LONG_NANOS)).isTrue();
    }

    private void move(DeviceDriver driver) {
        DeviceSpan pool = driver.allocate((long) PAGES * LAYERS * 2 * PIECE);
        DeviceSpan blocks = driver.allocate(2L * BLOCK);
        PagedLayout layout = PagedLayout.blockFirst(pool, LAYERS, 2, PAGES, PIECE, PER_BLOCK);
        try (DeviceStream stream = driver.openStream(Priority.NORMAL);
                DeviceEvent event = driver.openEvent()) {
            stream.fill(pool, (byte) 1);
            for (int layer = 0; layer < LAYERS; layer++) {
                PagedLayout ofLayer = layout.ofLayers(layer, layer + 1);
                MemorySegment share = content.asSlice(layer * layout.layerBytes(), layout.layerBytes());
                HostPageCopier.copy(stream, ofLayer, List.of(share), List.of(FROM), CopyDirection.TO_DEVICE);
            }
            byKernel(driver, layout, stream, blocks.slice(0, BLOCK));
            byCopies(driver, layout, stream, blocks.slice(BLOCK, BLOCK));
            stream.record(event);
            await(event);
            assertThat(back.mismatch(content)).isEqualTo(-1);
        }
        driver.free(pool);
        driver.free(blocks);
    }

    /// To other pages, small pieces by a kernel.
    private static void byKernel(DeviceDriver driver, PagedLayout layout, DeviceStream stream, DeviceSpan block) {
        GpuKernels kernels = GpuKernels.load(driver, 2);
        try (PageCopier mover = mover(driver, kernels, new CopyThreshold(1 << 20))) {
            mover.gather(stream, layout, List.of(new DeviceBlock(block, FROM)));
            mover.scatter(stream, layout, List.of(new DeviceBlock(block, TO)));
        }
    }

    private static PageCopier mover(DeviceDriver driver, GpuKernels kernels, CopyThreshold threshold) {
        try {
            return PageCopier.of(driver, kernels, threshold);
        } catch (DeviceException refused) {
            kernels.close();
            throw refused;
        }
    }

    /// From there to the host, by the copy engine.
    private void byCopies(DeviceDriver driver, PagedLayout layout, DeviceStream stream, DeviceSpan block) {
        try (PageCopier mover = mover(driver, GpuKernels.load(driver, 2), CopyThreshold.ALWAYS_COPY)) {
            mover.gather(stream, layout, List.of(new DeviceBlock(block, TO)));
            stream.copyToHost(block.address(), back);
        }
    }
}
