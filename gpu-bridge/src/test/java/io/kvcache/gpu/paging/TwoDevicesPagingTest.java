package io.kvcache.gpu.paging;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels;
import io.kvcache.gpu.paging.PageCopier.DeviceBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Movers on two devices of one process, driven in turn by one thread.
final class TwoDevicesPagingTest {

    private static final int LAYERS = 2;
    private static final int PAGES = 40;
    private static final int PIECE = 1024;
    private static final int PER_BLOCK = 4;
    private static final int BLOCK = LAYERS * 2 * PER_BLOCK * PIECE;
    private static final int[] FROM = {7, 3, 39, 0};
    private static final int[] TO = {1, 2, 38, 20};
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final FakeCuda fakeCuda = FakeCuda.reset().withTwoDevices();
    private final Arena arena = Arena.ofShared();

    @AfterEach
    void close() {
        assertThat(fakeCuda.left()).isEmpty();
        FakeCuda.reset();
        arena.close();
    }

    /// A pool, a block, and what moves between them.
    private final class PagedDevice implements AutoCloseable {

        private final DeviceDriver driver;
        private final DeviceSpan pool;
        private final DeviceSpan block;
        private final PagedLayout layout;
        private final PageCopier mover;
        private final DeviceStream stream;
        private final DeviceEvent event;
        private final MemorySegment content = arena.allocate(BLOCK, 4096);

        PagedDevice(int device, CopyThreshold threshold) {
            driver = fakeCuda.open(device);
            pool = driver.allocate((long) PAGES * LAYERS * 2 * PIECE);
            block = driver.allocate(BLOCK);
            layout = PagedLayout.blockFirst(pool, LAYERS, 2, PAGES, PIECE, PER_BLOCK);
            mover = PageCopier.of(driver, GpuKernels.load(driver, 2), threshold);
            stream = driver.openStream(Priority.NORMAL);
            event = driver.openEvent();
            new BlockContent(device + 31).fill(content);
        }

        void scatter(int[] pages) {
            stream.copyToDevice(content, block.address());
            mover.scatter(stream, layout, List.of(new DeviceBlock(block, pages)));
            stream.fill(block, (byte) 0);
        }

        void gather(int[] pages) {
            mover.gather(stream, layout, List.of(new DeviceBlock(block, pages)));
        }

        void toOtherPages() {
            mover.gather(stream, layout, List.of(new DeviceBlock(block, FROM)));
            mover.scatter(stream, layout, List.of(new DeviceBlock(block, TO)));
            stream.fill(block, (byte) 0);
        }

        void requireBlock() {
            MemorySegment back = arena.allocate(BLOCK, 4096);
            stream.copyToHost(block.address(), back);
            stream.record(event);
            assertThat(event.await(LONG_NANOS)).isTrue();
            assertThat(back.mismatch(content)).isEqualTo(-1);
        }

        @Override
        public void close() {
            mover.close();
            stream.close();
            event.close();
            driver.free(pool);
            driver.free(block);
            assertThat(driver.resourceCounts()).isEqualTo(ResourceCounts.NONE);
            driver.close();
        }
    }

    /// By the copy engine, and by a kernel.
    @ParameterizedTest
    @ValueSource(ints = {0, 1 << 20})
    void givenAMoverOnEach_whenTheyMoveInTurn_thenEachBlockHasItsOwnBytes(int threshold) {
        CopyThreshold copied = new CopyThreshold(threshold);
        try (PagedDevice first = new PagedDevice(0, copied);
                PagedDevice second = new PagedDevice(1, copied)) {
            first.scatter(FROM);
            second.scatter(FROM);
            second.toOtherPages();
            first.toOtherPages();
            first.gather(TO);
            second.gather(TO);
            second.requireBlock();
            first.requireBlock();
            if (fakeCuda.canHold() && threshold > 0) {
                assertThat(fakeCuda.calls("cuLaunchKernel")).isEqualTo(8);
            }
        }
    }
}
