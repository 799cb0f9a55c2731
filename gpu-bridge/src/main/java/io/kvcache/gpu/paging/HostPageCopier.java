package io.kvcache.gpu.paging;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.CopyBatch.CopyDirection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Moves small pieces between registered host memory and an engine's pages by a kernel that reads and writes host
/// memory where it lies. A copy engine needs about as long for each piece as for many bytes; a kernel does not.
///
/// The kernel takes the places of the pieces from a [PieceList]. Lists are few. When none is free, or pieces do
/// not fit into one, the caller copies them as ever and does not wait.
///
/// **Ownership.** The caller closes this once the device has done with all lists.
///
/// **Threads.** The driver's.
public final class HostPageCopier implements AutoCloseable {

    /// Groups of threads, as few as use all of the bus: engines want the GPU's processors for themselves.
    private static final int THREAD_GROUPS = 16;

    /// How many times as fast as copies a kernel must be. Copies leave the GPU's processors to the engine. A kernel
    /// does not, and while the engine's process computes it has half of the time, or less.
    private static final int MIN_GAIN = 2;

    /// Pieces that are handed to the device together: it copies these while the next are planned.
    private static final int PIECES_AT_ONCE = 256;

    private static final int LIST_COUNT = 4;
    private static final int UNIT_BYTES = 16;
    private static final int PAGE = 4096;
    private static final int MEASURED_BLOCK_PAGES = 32;

    /// Most pieces of one copy: 64 MiB in pieces of 4 KiB.
    static final int MAX_PIECES = 16 << 10;

    private static final long LIST_BYTES = 2L * Long.BYTES * MAX_PIECES;

    private final DeviceDriver driver;
    private final ResourceScope resources = new ResourceScope();
    private CopyThreshold threshold = CopyThreshold.ALWAYS_COPY;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment addresses = arena.allocate(LIST_COUNT * LIST_BYTES, PAGE);
    private final DeviceSpan memory;
    private final Deque<PieceList> freeLists = new ArrayDeque<>();

    private HostPageCopier(DeviceDriver driver, GpuKernels kernels) {
        this.driver = driver;
        resources.register(kernels, GpuKernels::close);
        try {
            memory = resources.register(driver.allocate(LIST_COUNT * LIST_BYTES), driver::free);
            driver.register(addresses);
            resources.register(addresses, driver::unregister);
            if (!driver.isReachable(addresses)) {
                throw new DeviceException(DeviceError.NOT_SUPPORTED, "kernels", "the device has other host addresses");
            }
        } catch (DeviceException refused) {
            arena.close();
            throw resources.releaseAfter(refused);
        }
        for (int i = 0; i < LIST_COUNT; i++) {
            DeviceSpan list = memory.slice(i * LIST_BYTES, LIST_BYTES);
            freeLists.add(new PieceList(this, kernels, list, addresses.asSlice(i * LIST_BYTES, LIST_BYTES)));
        }
    }

    /// Takes 1 MiB of the device, and loads code.
    ///
    /// @param thresholds knows from which size on pieces are better copied, or measures it
    /// @throws DeviceException when the device has too little memory, runs no code, or does not register host
    ///     memory; nothing is taken then
    public static HostPageCopier open(DeviceDriver driver, Function<HostPageCopier, CopyThreshold> thresholds) {
        HostPageCopier copier = new HostPageCopier(driver, GpuKernels.load(driver, THREAD_GROUPS));
        try {
            copier.threshold = thresholds.apply(copier);
            return copier;
        } catch (DeviceException refused) {
            copier.abandon(refused);
            throw refused;
        }
    }

    private void abandon(DeviceException why) {
        try {
            close();
        } catch (DeviceException refused) {
            why.addSuppressed(refused);
        }
    }

    /// Measures from where on pieces are better copied: the smallest of 4, 8, … 64 KiB of which copies load 128
    /// scattered pieces at least half as fast as a kernel does, in the best of three; 128 KiB when there is none.
    /// Takes 16 MiB of the device, and 8 MiB of host memory, meanwhile.
    ///
    /// @param nanos a clock that never goes back
    /// @throws DeviceException when the device refuses
    public CopyThreshold measure(LongSupplier nanos) {
        PieceList list = freeLists.remove();
        Deque<Runnable> taken = new ArrayDeque<>();
        Arena own = Arena.ofShared();
        taken.push(own::close);
        try {
            MemorySegment host =
                    own.allocate((long) CopyThreshold.MEASURED_PIECES * CopyThreshold.MAX_PIECE_BYTES, PAGE);
            DeviceSpan pool = driver.allocate(2L * CopyThreshold.MEASURED_PIECES * CopyThreshold.MAX_PIECE_BYTES);
            taken.push(() -> driver.free(pool));
            driver.register(host);
            taken.push(() -> driver.unregister(host));
            DeviceStream stream = driver.openStream(Priority.HIGH);
            taken.push(stream::close);
            DeviceEvent event = driver.openEvent();
            taken.push(event::close);
            stream.fill(pool, (byte) 0);
            return CopyThreshold.search(bytes -> {
                PagedLayout layout = PagedLayout.blockFirst(
                        pool, 1, 1, 2 * CopyThreshold.MEASURED_PIECES, bytes, MEASURED_BLOCK_PAGES);
                List<MemorySegment> blocks = new ArrayList<>();
                List<int[]> pages = new ArrayList<>();
                CopyBatch batch = CopyBatch.toDevice();
                addScattered(layout, host, blocks, pages, batch);
                long copying = CopyThreshold.bestTime(nanos, stream, event, () -> stream.copy(batch));
                long kernel = CopyThreshold.bestTime(
                        nanos, stream, event, () -> list.load(stream, layout, blocks, pages, null));
                return copying <= MIN_GAIN * kernel;
            });
        } finally {
            try {
                taken.forEach(Runnable::run); // each waits for what is on its way; when that has no end, all stays
            } finally {
                freeLists.add(list);
            }
        }
    }

    private static void addScattered(
            PagedLayout layout, MemorySegment host, List<MemorySegment> blocks, List<int[]> pages, CopyBatch batch) {
        for (int i = 0; i < CopyThreshold.MEASURED_PIECES / MEASURED_BLOCK_PAGES; i++) {
            int first = i * MEASURED_BLOCK_PAGES;
            int[] apart = IntStream.range(first, first + MEASURED_BLOCK_PAGES)
                    .map(page -> 2 * page) // with gaps, so that no two become one
                    .toArray();
            blocks.add(host.asSlice(i * layout.blockBytes(), layout.blockBytes()));
            pages.add(apart);
            layout.addOnboard(blocks.getLast(), apart, 0, batch);
        }
    }

    /// From where on pieces are copied.
    public CopyThreshold threshold() {
        return threshold;
    }

    /// Returns whether a kernel is for the pieces of a pool: they must be small, and begin at multiples of 16.
    public static boolean supports(PagedLayout layout) {
        return layout.pieceBytes() < CopyThreshold.MAX_THRESHOLD_BYTES && layout.isAlignedTo(UNIT_BYTES);
    }

    /// A list for the pieces of these blocks, when a kernel had better move them.
    ///
    /// @param blocks host memory of each
    /// @param pages of each block, each page once
    /// @return null when they are better copied, or have to be
    public @Nullable PieceList acquireList(PagedLayout layout, List<MemorySegment> blocks, List<int[]> pages) {
        long bytes = blocks.size() * layout.blockBytes();
        if (bytes == 0 || bytes / layout.pieceBytes() > MAX_PIECES || !supports(layout)) {
            return null;
        }
        long runs = layout.runs(pages);
        boolean copied = threshold.usesCopyEngine(bytes / runs, runs);
        return copied || !blocks.stream().allMatch(this::isReachable) ? null : freeLists.poll();
    }

    private boolean isReachable(MemorySegment block) {
        return block.address() % UNIT_BYTES == 0 && driver.isReachable(block);
    }

    /// Moves the pieces of these blocks by copies, where there is no list for them: one for each piece, or for a run of
    /// pages that are adjacent.
    ///
    /// @param blocks host memory of each
    /// @param pages of each block, each page once
    /// @param direction between host memory and the device
    public static void copy(
            DeviceStream stream,
            PagedLayout layout,
            List<MemorySegment> blocks,
            List<int[]> pages,
            CopyDirection direction) {
        boolean loads = direction == CopyDirection.TO_DEVICE;
        CopyBatch batch = loads ? CopyBatch.toDevice() : CopyBatch.toHost();
        for (int block = 0; block < blocks.size(); block++) {
            for (int layer = 0; layer < layout.layers().size(); layer++) {
                if (loads) {
                    layout.addOnboard(blocks.get(block), pages.get(block), layer, batch);
                } else {
                    layout.addOffload(pages.get(block), blocks.get(block), layer, batch);
                }
            }
            if (batch.pieces() >= PIECES_AT_ONCE || block == blocks.size() - 1) {
                stream.copy(batch);
                batch.clear();
            }
        }
    }

    void returnList(PieceList list) {
        freeLists.add(list);
    }

    /// {@inheritDoc}
    ///
    /// @throws DeviceException when the device refuses; what it still has goes with the driver, and
    ///     host memory that it may still read stays for good
    @Override
    public void close() {
        resources.releaseAll();
        arena.close();
    }
}
