package io.kvcache.gpu.paging;

import io.kvcache.gpu.driver.AllocationTable;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.CopyBatch.CopyRanges;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.PinnedHostRanges;
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

/// Takes small pieces between registered host memory and an engine's pages by way of rooms on the device, see
/// [DeviceStagingBuffer]. A copy engine needs about as long for each piece as for many bytes; a kernel does not.
///
/// Rooms are few. When none is free, or a work does not fit, there is none to be had, and pieces are copied
/// as ever: no caller waits for a room.
///
/// **Ownership.** The caller closes this once the device has done with all rooms.
///
/// **Threads.** The driver's.
public final class StagedCopier implements AutoCloseable {

    /// Groups of threads for small pieces: engines want their processors for themselves.
    private static final int THREAD_GROUPS = 32;

    /// Enough for the copy of the next part to be worth its call.
    static final long BUFFER_BYTES = 4L << 20;

    private static final int BUFFER_COUNT = 4;
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
    private final MemorySegment addresses = arena.allocate(BUFFER_COUNT * LIST_BYTES, PAGE);
    private final DeviceSpan memory;
    private final Deque<DeviceStagingBuffer> freeBuffers = new ArrayDeque<>();

    private StagedCopier(DeviceDriver driver, GpuKernels kernels) {
        this.driver = driver;
        resources.register(kernels, GpuKernels::close);
        try {
            memory = resources.register(driver.allocate(BUFFER_COUNT * (BUFFER_BYTES + LIST_BYTES)), driver::free);
            driver.register(addresses);
            resources.register(addresses, driver::unregister);
        } catch (DeviceException refused) {
            arena.close();
            throw resources.releaseAfter(refused);
        }
        for (int i = 0; i < BUFFER_COUNT; i++) {
            DeviceSpan blocks = memory.slice(i * BUFFER_BYTES, BUFFER_BYTES);
            DeviceSpan list = memory.slice(BUFFER_COUNT * BUFFER_BYTES + i * LIST_BYTES, LIST_BYTES);
            freeBuffers.add(new DeviceStagingBuffer(
                    this, kernels, blocks, list, addresses.asSlice(i * LIST_BYTES, LIST_BYTES)));
        }
    }

    /// Takes 17 MiB of the device, and loads code.
    ///
    /// @param thresholds knows from which size on pieces are better copied, or measures it
    /// @throws DeviceException when the device has not so much, runs no code, or does not let host memory be
    ///     registered; nothing is taken then
    public static StagedCopier open(DeviceDriver driver, Function<StagedCopier, CopyThreshold> thresholds) {
        StagedCopier staged = new StagedCopier(driver, GpuKernels.load(driver, THREAD_GROUPS));
        try {
            staged.threshold = thresholds.apply(staged);
            return staged;
        } catch (DeviceException refused) {
            staged.abandon(refused);
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

    /// Measures from where on pieces are better copied: the smallest of 4, 8, … 64 KiB of which copies load
    /// 128 scattered pieces at least as fast as this does, in the best of three; 128 KiB when there is none.
    /// Takes 16 MiB of the device, and 8 MiB of host memory, meanwhile.
    ///
    /// @param nanos a clock that never goes back
    /// @throws DeviceException when the device refuses
    public CopyThreshold measure(LongSupplier nanos) {
        DeviceStagingBuffer room = freeBuffers.remove();
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
                return copying
                        <= CopyThreshold.bestTime(
                                nanos, stream, event, () -> room.load(stream, layout, blocks, pages, null));
            });
        } finally {
            try {
                taken.forEach(Runnable::run); // each waits for what is on its way; when that has no end, all stays
            } finally {
                freeBuffers.add(room);
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

    /// Returns whether pieces of a pool can be staged: they must be small, and begin at multiples of 16.
    public static boolean supports(PagedLayout layout) {
        return layout.pieceBytes() < CopyThreshold.MAX_THRESHOLD_BYTES && layout.isAlignedTo(UNIT_BYTES);
    }

    /// A room for a work, when it is better done in one.
    ///
    /// @param copies what would be done in its place
    /// @return null when it is better copied, or has to be
    /// @throws IllegalArgumentException when two of the copies write to the same place
    public @Nullable DeviceStagingBuffer acquireBuffer(PagedLayout layout, CopyBatch copies) {
        if (!supports(layout) || copies.pieces() == 0 || copies.pieces() > MAX_PIECES) {
            return null;
        }
        CopyRanges runs = copies.toRanges(new PinnedHostRanges(), new AllocationTable());
        return threshold.usesCopyEngine(copies.bytes() / runs.count(), runs.count()) ? null : freeBuffers.poll();
    }

    void returnBuffer(DeviceStagingBuffer room) {
        freeBuffers.add(room);
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
