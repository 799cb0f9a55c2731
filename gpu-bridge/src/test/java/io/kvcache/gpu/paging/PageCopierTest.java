package io.kvcache.gpu.paging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.host.FakeDeviceDriver;
import io.kvcache.gpu.kernel.GpuKernels;
import io.kvcache.gpu.paging.PageCopier.DeviceBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks and pages in the same device's memory, moved by copies and by a kernel.
final class PageCopierTest {

    private static final int LAYERS = 3;
    private static final int PAGES = 40;
    private static final int PIECE = 1008;
    private static final int PER_BLOCK = 4;
    private static final int BLOCK = LAYERS * 2 * PER_BLOCK * PIECE;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private Arena arena = Arena.ofShared();
    private DeviceDriver driver;
    private DeviceStream stream;
    private DeviceEvent event;
    private DeviceSpan pool;
    private DeviceSpan blocks;

    @SuppressWarnings("NullAway.Init") // opened before each test
    PageCopierTest() {}

    @BeforeEach
    void open() {
        open(fakeCuda.open());
    }

    private void open(DeviceDriver with) {
        driver = with;
        stream = driver.openStream(Priority.NORMAL);
        event = driver.openEvent();
        pool = driver.allocate((long) LAYERS * 2 * PAGES * PIECE);
        blocks = driver.allocate(3L * BLOCK + 8);
    }

    @AfterEach
    void close() {
        stream.close();
        event.close();
        driver.free(pool);
        driver.free(blocks);
        driver.close();
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    @Test
    void givenADeviceThatCannotSayWhetherItHasDone_whenClosed_thenNothingIsKept() {
        FaultInjection.assumePossible(fakeCuda);
        ResourceCounts before = driver.resourceCounts();
        PageCopier mover = PageCopier.of(driver, GpuKernels.load(driver, 2), new CopyThreshold(1 << 20));
        fakeCuda.failCall("cuEventQuery", 1, 2);
        assertThatExceptionOfType(DeviceException.class).isThrownBy(mover::close);
        assertThat(driver.resourceCounts()).isEqualTo(before);
    }

    private PagedLayout layout() {
        return PagedLayout.blockFirst(pool, LAYERS, 2, PAGES, PIECE, PER_BLOCK);
    }

    private MemorySegment filled(DeviceSpan span, int seed) {
        MemorySegment content = arena.allocate(span.bytes(), 8);
        new BlockContent(seed).fill(content);
        stream.copyToDevice(content, span.address());
        return content;
    }

    private MemorySegment read(DeviceSpan span) {
        MemorySegment back = arena.allocate(span.bytes(), 8);
        stream.copyToHost(span.address(), back);
        stream.record(event);
        assertThat(event.await(LONG_NANOS)).isTrue();
        return back;
    }

    private List<DeviceBlock> placed(int offset) {
        return List.of(
                new DeviceBlock(blocks.slice(offset, BLOCK), new int[] {7, 3, 39, 0}),
                new DeviceBlock(blocks.slice(offset + BLOCK, BLOCK), new int[] {1, 2, 38, 20}),
                new DeviceBlock(blocks.slice(offset + 2L * BLOCK, BLOCK), new int[] {30, 31, 32, 33}));
    }

    /// What blocks of these pages have, out of a pool that is `[page][layer][side]`.
    private MemorySegment expected(MemorySegment all, List<DeviceBlock> wanted) {
        MemorySegment out = arena.allocate((long) wanted.size() * BLOCK, 8);
        long at = 0;
        for (DeviceBlock block : wanted) {
            for (int run = 0; run < LAYERS * 2; run++) {
                for (int page : block.pages()) {
                    MemorySegment.copy(all, ((long) page * LAYERS * 2 + run) * PIECE, out, at, PIECE);
                    at += PIECE;
                }
            }
        }
        return out;
    }

    private static boolean same(MemorySegment one, MemorySegment other) {
        return one.mismatch(other) == -1;
    }

    /// A threshold of 0 copies, one above the pieces runs a kernel, unless the blocks lie askew.
    @ParameterizedTest
    @CsvSource({"0,0,0", "1008,0,0", "1009,0,1", "1009,8,0"})
    void givenAThreshold_whenPagesAreGatheredAndScattered_thenByTheOneAndTheSameBytes(
            int threshold, int askew, int launches) {
        PageCopier mover = PageCopier.of(driver, GpuKernels.load(driver, 3), new CopyThreshold(threshold));
        MemorySegment content = filled(pool, 1);
        List<DeviceBlock> wanted = placed(askew);
        mover.gather(stream, layout(), wanted);
        MemorySegment gathered = read(blocks.slice(askew, 3L * BLOCK));
        assertThat(same(gathered, expected(content, wanted))).isTrue();
        stream.fill(pool, (byte) 0x77);
        mover.scatter(stream, layout(), wanted);
        MemorySegment after = read(pool);
        assertThat(same(expected(after, wanted), gathered)).isTrue();
        MemorySegment untouched = after.asSlice(10L * LAYERS * 2 * PIECE, LAYERS * 2 * PIECE);
        assertThat(untouched.mismatch(arena.allocate(untouched.byteSize()).fill((byte) 0x77)))
                .isEqualTo(-1);
        if (fakeCuda.canHold()) {
            assertThat(fakeCuda.calls("cuLaunchKernel")).isEqualTo(2L * launches);
            assertThat(fakeCuda.calls("cuMemcpyBatchAsync_v2"))
                    .isEqualTo((2L - 2L * launches) * FakeCuda.batches(3L * BLOCK / PIECE));
        }
        mover.close();
    }

    /// The second list goes to the device while the kernel that reads the first has not run.
    @Test
    void givenTwoStreams_whenBlocksAreMovedOnEach_thenEachKernelReadsItsOwnList() {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        PageCopier mover = PageCopier.of(driver, GpuKernels.load(driver, 3), new CopyThreshold(1 << 20));
        DeviceStream other = driver.openStream(Priority.NORMAL);
        MemorySegment content = filled(pool, 1);
        List<DeviceBlock> first = List.of(placed(0).getFirst());
        List<DeviceBlock> second = List.of(placed(0).getLast());
        stream.record(event);
        other.waitFor(event);
        fakeCuda.holdLaunches();
        mover.gather(stream, layout(), first);
        mover.gather(other, layout(), second);
        fakeCuda.release();
        other.record(event);
        assertThat(event.await(LONG_NANOS)).isTrue();
        assertThat(same(read(first.getFirst().bytes()), expected(content, first)))
                .isTrue();
        assertThat(same(read(second.getFirst().bytes()), expected(content, second)))
                .isTrue();
        mover.close();
        other.close();
    }

    @Test
    void givenAFaultAtEachCallInTurn_whenAMoverIsMade_thenNothingIsLeft() {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        ResourceCounts before = driver.resourceCounts();
        for (int nth = 1; nth <= 3; nth++) {
            GpuKernels kernels = GpuKernels.load(driver, 3);
            fakeCuda.failCall(nth == 1 ? "cuMemAlloc_v2" : "cuEventCreate", Math.max(1, nth - 1), 2);
            assertThatExceptionOfType(DeviceException.class)
                    .isThrownBy(() -> PageCopier.of(driver, kernels, CopyThreshold.ALWAYS_COPY));
            kernels.close();
            assertThat(driver.resourceCounts()).isEqualTo(before);
        }
    }

    @Test
    void givenFewPieces_whenMoved_thenTheyAreCopiedWhateverTheirSize() {
        PagedLayout small = PagedLayout.blockFirst(pool, LAYERS, 2, PAGES, PIECE, 2);
        PageCopier mover = PageCopier.of(driver, GpuKernels.load(driver, 3), new CopyThreshold(1 << 20));
        mover.gather(stream, small, List.of(new DeviceBlock(blocks.slice(0, BLOCK / 2), new int[] {3, 9})));
        stream.record(event);
        assertThat(event.await(LONG_NANOS)).isTrue();
        assertThat(fakeCuda.canHold() ? fakeCuda.calls("cuLaunchKernel") : 0).isZero();
        mover.close();
    }

    @Test
    void givenAPageThatIsNoneOrGetsTwo_whenMoved_thenRefusedAndNothingIsBegun() {
        PageCopier mover = PageCopier.of(driver, GpuKernels.load(driver, 3), new CopyThreshold(1 << 20));
        DeviceSpan block = blocks.slice(0, BLOCK);
        DeviceSpan other = blocks.slice(BLOCK, BLOCK);
        List<DeviceBlock> none = List.of(new DeviceBlock(block, new int[] {1, 2, 3, PAGES}));
        List<DeviceBlock> twice =
                List.of(new DeviceBlock(block, new int[] {1, 2, 3, 4}), new DeviceBlock(other, new int[] {5, 6, 7, 1}));
        assertThatIllegalArgumentException().isThrownBy(() -> mover.scatter(stream, layout(), none));
        assertThatIllegalArgumentException().isThrownBy(() -> mover.scatter(stream, layout(), twice));
        assertThatIllegalArgumentException().isThrownBy(() -> new CopyThreshold(-1));
        assertThat(fakeCuda.canHold() ? fakeCuda.calls("cuLaunchKernel") : 0).isZero();
        mover.close();
    }

    /// Of each size three copies are timed, then three runs of the kernel, with two looks at the clock each.
    private static LongSupplier clock(int slowSizes) {
        long[] looks = {0, 0};
        return () -> {
            long measurement = looks[0] / 2;
            boolean slowCopy = measurement % 6 < 3 && measurement / 6 < slowSizes;
            looks[1] += looks[0]++ % 2 == 0 ? 1 : slowCopy ? 100 : measurement % 6 < 3 ? 10 : 50;
            return looks[1];
        };
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 3, 5})
    void givenCopiesThatAreSlowWhenSmall_whenMeasured_thenTheThresholdIsWhereTheyAreNot(int slowSizes) {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        try (GpuKernels kernels = GpuKernels.load(driver, 3)) {
            CopyThreshold found = CopyThreshold.measure(driver, kernels, clock(slowSizes));
            assertThat(found.pieceBytes()).isEqualTo((4 << 10) << slowSizes);
        }
    }

    @Test
    void givenADeviceThatRunsNoCode_whenCalibrated_thenEverythingIsCopied() {
        close();
        arena = Arena.ofShared();
        open(FakeDeviceDriver.open(64 << 20));
        try (PageCopier mover = PageCopier.calibrated(driver)) {
            assertThat(mover.threshold()).isEqualTo(CopyThreshold.ALWAYS_COPY);
            MemorySegment content = filled(pool, 1);
            mover.gather(stream, layout(), placed(0));
            assertThat(same(read(blocks.slice(0, 3L * BLOCK)), expected(content, placed(0))))
                    .isTrue();
        }
    }

    @Test
    void givenADeviceThatDoes_whenCalibrated_thenItIsOneOfTheSizesAndNothingIsLeft() {
        try (PageCopier mover = PageCopier.calibrated(driver)) {
            assertThat(mover.threshold().pieceBytes()).isBetween(4 << 10, 128 << 10);
        }
    }
}
