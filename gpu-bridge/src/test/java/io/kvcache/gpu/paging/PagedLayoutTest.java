package io.kvcache.gpu.paging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.CopyBatch.CopyDirection;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.DeviceUnderTest;
import io.kvcache.gpu.host.BlockableDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Blocks go into the pages of an engine and come out of them, in every layout and on every device.
final class PagedLayoutTest {

    private static final int LAYERS = 3;
    private static final int PAGES = 11;
    private static final int PIECE = 1_003; // odd, so that a mistake in a stride shows
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(30);

    /// How a pool may be arranged. Each says by itself where a piece lies in one run over the whole pool.
    enum PoolShape {
        SIDE_FIRST(2) {
            @Override
            PagedLayout over(DeviceSpan pool) {
                return PagedLayout.sideFirst(byLayer(pool), 2, PAGES, PIECE, 2);
            }

            @Override
            long place(int layer, int side, int page) {
                return ((layer * 2L + side) * PAGES + page) * PIECE;
            }
        },
        PAGE_FIRST(2) {
            @Override
            PagedLayout over(DeviceSpan pool) {
                return PagedLayout.pageFirst(byLayer(pool), 2, PAGES, PIECE, 2);
            }

            @Override
            long place(int layer, int side, int page) {
                return ((layer * (long) PAGES + page) * 2 + side) * PIECE;
            }
        },
        BLOCK_FIRST(2) {
            @Override
            PagedLayout over(DeviceSpan pool) {
                return PagedLayout.blockFirst(pool, LAYERS, 2, PAGES, PIECE, 2);
            }

            @Override
            long place(int layer, int side, int page) {
                return ((page * (long) LAYERS + layer) * 2 + side) * PIECE;
            }
        },
        LATENT(1) {
            @Override
            PagedLayout over(DeviceSpan pool) {
                return PagedLayout.sideFirst(byLayer(pool), 1, PAGES, PIECE, 2);
            }

            @Override
            long place(int layer, int side, int page) {
                return (layer * (long) PAGES + page) * PIECE;
            }
        };

        final int sides;

        PoolShape(int sides) {
            this.sides = sides;
        }

        abstract PagedLayout over(DeviceSpan pool);

        abstract long place(int layer, int side, int page);

        long bytes() {
            return (long) LAYERS * sides * PAGES * PIECE;
        }

        List<DeviceSpan> byLayer(DeviceSpan pool) {
            List<DeviceSpan> layers = new ArrayList<>();
            long each = bytes() / LAYERS;
            for (int layer = 0; layer < LAYERS; layer++) {
                layers.add(pool.slice(layer * each, each));
            }
            return layers;
        }

        /// What a block must have, read out of the whole pool piece by piece.
        MemorySegment block(MemorySegment pool, Arena arena, int... pages) {
            MemorySegment block = arena.allocate((long) LAYERS * sides * pages.length * PIECE);
            long at = 0;
            for (int layer = 0; layer < LAYERS; layer++) {
                for (int side = 0; side < sides; side++) {
                    for (int page : pages) {
                        MemorySegment.copy(pool, place(layer, side, page), block, at, PIECE);
                        at += PIECE;
                    }
                }
            }
            return block;
        }
    }

    /// The tests, over one device.
    abstract static class DeviceLayoutTests {

        private final DeviceUnderTest subject;
        private final Arena arena = Arena.ofShared();
        private DeviceDriver driver;
        private DeviceStream stream;
        private DeviceEvent event;
        private final List<DeviceSpan> slabs = new ArrayList<>();

        @SuppressWarnings("NullAway.Init") // opened before each test
        DeviceLayoutTests(DeviceUnderTest subject) {
            this.subject = subject;
        }

        @BeforeEach
        void open() {
            driver = subject.open();
            stream = driver.openStream(Priority.NORMAL);
            event = driver.openEvent();
        }

        @AfterEach
        void close() {
            subject.release();
            stream.close();
            event.close();
            slabs.forEach(driver::free);
            driver.close();
            arena.close();
        }

        private DeviceSpan slab(long bytes) {
            DeviceSpan slab = driver.allocate(bytes);
            slabs.add(slab);
            return slab;
        }

        private void finish() {
            stream.record(event);
            assertThat(event.await(LONG_NANOS)).isTrue();
        }

        /// A pool with something in it.
        private MemorySegment fill(DeviceSpan pool, int seed) {
            MemorySegment content = arena.allocate(pool.bytes());
            new BlockContent(seed).fill(content);
            stream.copyToDevice(content, pool.address());
            finish();
            return content;
        }

        private void copy(CopyBatch batch) {
            stream.copy(batch);
            finish();
        }

        private MemorySegment read(DeviceSpan span) {
            MemorySegment back = arena.allocate(span.bytes());
            stream.copyToHost(span.address(), back);
            finish();
            return back;
        }

        private static void assertSame(MemorySegment found, MemorySegment expected) {
            assertThat(found.mismatch(expected)).isEqualTo(-1);
        }

        @ParameterizedTest
        @EnumSource
        void givenAPool_whenBlocksAreTakenOutOfIt_thenTheyAreThePiecesOfTheirPages(PoolShape shape) {
            DeviceSpan pool = slab(shape.bytes());
            PagedLayout pages = shape.over(pool);
            MemorySegment content = fill(pool, 1);
            MemorySegment block = arena.allocate(pages.blockBytes());
            DeviceSpan onDevice = slab(pages.blockBytes());
            CopyBatch home = CopyBatch.toHost();
            CopyBatch within = CopyBatch.within();
            for (int layer = 0; layer < LAYERS; layer++) {
                pages.addOffload(new int[] {7, 2}, block, layer, home);
                pages.addGather(new int[] {0, PAGES - 1}, onDevice, layer, within);
            }
            copy(home);
            copy(within);
            assertSame(block, shape.block(content, arena, 7, 2));
            assertSame(read(onDevice), shape.block(content, arena, 0, PAGES - 1));
        }

        @ParameterizedTest
        @EnumSource
        void givenBlocks_whenPutIntoPages_thenTheseHaveThemAndAllOthersStay(PoolShape shape) {
            DeviceSpan pool = slab(shape.bytes());
            PagedLayout pages = shape.over(pool);
            MemorySegment before = fill(pool, 1);
            MemorySegment block = arena.allocate(pages.blockBytes());
            new BlockContent(2).fill(block);
            DeviceSpan onDevice = slab(pages.blockBytes());
            MemorySegment other = fill(onDevice, 3);
            CopyBatch there = CopyBatch.toDevice();
            CopyBatch within = CopyBatch.within();
            for (int layer = 0; layer < LAYERS; layer++) {
                pages.addOnboard(block, new int[] {4, 9}, layer, there);
                pages.addScatter(onDevice, new int[] {3, 5}, layer, within);
            }
            copy(there);
            copy(within);
            MemorySegment after = read(pool);
            assertSame(shape.block(after, arena, 4, 9), block);
            assertSame(shape.block(after, arena, 3, 5), other);
            for (int page : new int[] {0, 1, 2, 6, 7, 8, 10}) {
                assertSame(shape.block(after, arena, page), shape.block(before, arena, page));
            }
        }

        @ParameterizedTest
        @EnumSource
        void givenBlocksLayerByLayer_whenCopied_thenEachLayerGoesToItsPlace(PoolShape shape) {
            DeviceSpan pool = slab(shape.bytes());
            PagedLayout layout = shape.over(pool);
            MemorySegment first = arena.allocate(layout.blockBytes());
            MemorySegment second = arena.allocate(layout.blockBytes());
            new BlockContent(4).fill(first);
            new BlockContent(5).fill(second);
            long share = layout.layerBytes();
            for (int layer = 0; layer < LAYERS; layer++) {
                PagedLayout ofLayer = layout.ofLayers(layer, layer + 1);
                assertThat(ofLayer.blockBytes()).isEqualTo(share);
                HostPageCopier.copy(
                        stream,
                        ofLayer,
                        List.of(first.asSlice(layer * share, share), second.asSlice(layer * share, share)),
                        List.of(new int[] {1, 0}, new int[] {8, 10}),
                        CopyDirection.TO_DEVICE);
                MemorySegment after = read(pool);
                assertSame(
                        shape.block(after, arena, 1, 0).asSlice(0, (layer + 1) * share),
                        first.asSlice(0, (layer + 1) * share));
                assertSame(
                        shape.block(after, arena, 8, 10).asSlice(0, (layer + 1) * share),
                        second.asSlice(0, (layer + 1) * share));
            }
        }
    }

    @Nested
    final class FakeDeviceLayouts extends DeviceLayoutTests {
        FakeDeviceLayouts() {
            super(new BlockableDevice(64 << 20, 20_000));
        }
    }

    @Nested
    final class CudaLayouts extends DeviceLayoutTests {
        CudaLayouts() {
            super(FakeCuda.reset());
        }
    }

    private static PagedLayout layout() {
        DeviceSpan pool = new DeviceSpan(new DeviceAddress(1 << 20), PoolShape.LATENT.bytes());
        return PoolShape.LATENT.over(pool);
    }

    @Test
    void givenPagesThatThePoolDoesNotHave_whenCopied_thenRefusedAndNothingIsAdded() {
        PagedLayout pages = layout();
        CopyBatch batch = CopyBatch.toDevice();
        MemorySegment block = Arena.ofAuto().allocate(pages.blockBytes());
        for (int[] wrong : new int[][] {{0, PAGES}, {-1, 0}, {3, 3}, {1}, {1, 2, 3}}) {
            assertThatIllegalArgumentException().isThrownBy(() -> pages.addOnboard(block, wrong, 0, batch));
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> pages.addOnboard(block.asSlice(1), new int[] {0, 1}, 0, batch))
                .withMessageContaining("this pool's have");
        assertThat(batch.pieces()).isZero();
    }

    @Test
    void givenALayoutThatDoesNotFit_whenMade_thenRefused() {
        List<DeviceSpan> layers = layout().layers();
        long bytes = layers.getFirst().bytes();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> PagedLayout.sideFirst(layers, 1, PAGES + 1, PIECE, 2))
                .withMessageContaining("bytes of a layer " + bytes);
        assertThatIllegalArgumentException().isThrownBy(() -> PagedLayout.sideFirst(List.of(), 1, PAGES, PIECE, 2));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new PagedLayout(layers, 2, PIECE - 1, 2, 4 * PIECE, PIECE, 1))
                .withMessageContaining("sideStride");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new PagedLayout(layers, 1, 0, 2, PIECE - 1, PIECE, 1))
                .withMessageContaining("pageStride");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new PagedLayout(layers, 3, 0, 2, PIECE, PIECE, 1))
                .withMessageContaining("1 or 2");
    }

    /// Products that are no 64-bit number, which would otherwise look small.
    @Test
    void givenALayoutOfMoreThanThereCanBe_whenMade_thenRefused() {
        List<DeviceSpan> layers = layout().layers();
        long huge = 1L << 33;
        for (LayoutFactory wrong : List.<LayoutFactory>of(
                () -> new PagedLayout(layers, 1, 0, 1 << 30, huge, 1, 1),
                () -> new PagedLayout(layers, 2, Long.MAX_VALUE, 2, PIECE, PIECE, 1),
                () -> new PagedLayout(layers, 1, 0, 1, 0, huge, Integer.MAX_VALUE),
                () -> new PagedLayout(layers, 1, 0, 1, 0, Long.MAX_VALUE, 1))) {
            assertThatIllegalArgumentException().isThrownBy(wrong::make);
        }
    }

    @Test
    void givenTheLayoutsThatEnginesHave_whenAsked_thenTheirPiecesAreDisjoint() {
        DeviceSpan pool = new DeviceSpan(new DeviceAddress(1 << 20), 1 << 20);
        List<DeviceSpan> apart = List.of(pool.slice(8 * PIECE, 8 * PIECE), pool.slice(0, 8 * PIECE));
        PagedLayout.sideFirst(apart, 2, 4, PIECE, 1).requireDisjoint();
        PagedLayout.pageFirst(apart, 2, 4, PIECE, 1).requireDisjoint();
        PagedLayout.blockFirst(pool, 3, 2, 5, PIECE, 1).requireDisjoint();
        PagedLayout.blockFirst(pool, 1, 1, 1, PIECE, 1).requireDisjoint();
    }

    @Test
    void givenLayersThatOverlap_whenAsked_thenRefused() {
        DeviceSpan pool = new DeviceSpan(new DeviceAddress(1 << 20), 1 << 20);
        for (long by : new long[] {0, PIECE / 2, 7 * PIECE, 8 * PIECE - 1}) {
            PagedLayout layout =
                    PagedLayout.sideFirst(List.of(pool.slice(0, 8 * PIECE), pool.slice(by, 8 * PIECE)), 2, 4, PIECE, 1);
            assertThatIllegalArgumentException()
                    .as("the second layer by %d", by)
                    .isThrownBy(layout::requireDisjoint)
                    .withMessageContaining("overlap");
        }
    }

    @Test
    void givenAdjacentPages_whenCounted_thenARunIsOneCopyOfEachLayerAndSide() {
        DeviceSpan pool = new DeviceSpan(new DeviceAddress(1 << 20), 1 << 20);
        List<DeviceSpan> layers = List.of(pool.slice(0, 64 * PIECE), pool.slice(64 * PIECE, 64 * PIECE));
        List<int[]> pages = List.of(new int[] {4, 5, 6, 8}, new int[] {9, 3, 2, 1});
        assertThat(PagedLayout.sideFirst(layers, 2, 16, PIECE, 4).runs(pages)).isEqualTo((2 + 4) * 2 * 2);
        assertThat(PagedLayout.pageFirst(layers, 2, 16, PIECE, 4).runs(pages)).isEqualTo((4 + 4) * 2 * 2);
    }

    private interface LayoutFactory {

        PagedLayout make();
    }
}
