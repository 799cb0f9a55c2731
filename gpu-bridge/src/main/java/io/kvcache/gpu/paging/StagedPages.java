package io.kvcache.gpu.paging;

import io.kvcache.gpu.driver.AllocationTable;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.CopyRanges;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.PinnedHostRanges;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Takes small pieces between registered host memory and an engine's pages by way of rooms on the device,
/// see [StagingRoom]. A copy engine needs about as long for each piece as for many bytes; a kernel does not.
///
/// Rooms are few. When none is free, or a work does not fit, there is none to be had, and pieces are copied
/// as ever: nobody waits for a room.
///
/// **Ownership.** Who opened this closes it, once the device has done with all rooms.
///
/// **Threads.** The driver's.
public final class StagedPages implements AutoCloseable {

    /// Groups of threads for small pieces: engines want their processors for themselves.
    private static final int THREAD_GROUPS = 32;

    /// Enough for the copy of the next part to be worth its call.
    static final long ROOM_BYTES = 4L << 20;

    private static final int ROOMS = 4;
    private static final int UNIT_BYTES = 16;
    private static final int PAGE = 4096;

    /// Of one work: 64 MiB in pieces of 4 KiB.
    static final int MOST_PIECES = 16 << 10;

    private static final long LIST_BYTES = 2L * Long.BYTES * MOST_PIECES;

    private final DeviceDriver driver;
    private final ResourceScope holdings = new ResourceScope();
    private CopyThreshold threshold = CopyThreshold.COPIES;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment places = arena.allocate(ROOMS * LIST_BYTES, PAGE);
    private final DeviceSpan memory;
    private final Deque<StagingRoom> free = new ArrayDeque<>();

    private StagedPages(DeviceDriver driver, GpuKernels kernels) {
        this.driver = driver;
        holdings.register(kernels, GpuKernels::close);
        try {
            memory = holdings.register(driver.allocate(ROOMS * (ROOM_BYTES + LIST_BYTES)), driver::free);
            driver.register(places);
            holdings.register(places, driver::unregister);
        } catch (DeviceException refused) {
            arena.close();
            throw holdings.releaseAfter(refused);
        }
        for (int i = 0; i < ROOMS; i++) {
            DeviceSpan blocks = memory.slice(i * ROOM_BYTES, ROOM_BYTES);
            DeviceSpan list = memory.slice(ROOMS * ROOM_BYTES + i * LIST_BYTES, LIST_BYTES);
            free.add(new StagingRoom(this, kernels, blocks, list, places.asSlice(i * LIST_BYTES, LIST_BYTES)));
        }
    }

    /// Finds out from where on pieces are better copied.
    @FunctionalInterface
    public interface Threshold {

        /// Measures it, or knows it.
        ///
        /// @throws DeviceException when the device refuses
        CopyThreshold of(StagedPages staged);
    }

    /// Takes 17 MiB of the device, and loads code.
    ///
    /// @throws DeviceException when the device has not so much, runs no code, or does not let host memory be
    ///     registered; nothing is taken then
    public static StagedPages open(DeviceDriver driver, Threshold threshold) {
        StagedPages staged = new StagedPages(driver, GpuKernels.load(driver, THREAD_GROUPS));
        try {
            staged.threshold = threshold.of(staged);
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

    /// Measures from where on pieces are better copied, as of now: see [StagedThreshold].
    ///
    /// @param nanos a clock that never goes back
    /// @throws DeviceException when the device refuses
    public CopyThreshold measure(LongSupplier nanos) {
        StagingRoom room = free.remove();
        try {
            return StagedThreshold.measure(driver, room, nanos);
        } finally {
            free.add(room);
        }
    }

    /// From where on pieces are copied.
    public CopyThreshold threshold() {
        return threshold;
    }

    /// Whether pieces of a pool may ever go this way: they have to be small, and lie at multiples of 16.
    public static boolean suits(PagedLayout layout) {
        return layout.pieceBytes() < CopyThreshold.LARGEST_FOUND && layout.inUnitsOf(UNIT_BYTES);
    }

    /// A room for a work, when it is better done in one.
    ///
    /// @param copies what would be done in its place
    /// @return null when it is better copied, or has to be
    /// @throws IllegalArgumentException when two of the copies write to the same place
    public @Nullable StagingRoom room(PagedLayout layout, CopyBatch copies) {
        if (!suits(layout) || copies.pieces() == 0 || copies.pieces() > MOST_PIECES) {
            return null;
        }
        CopyRanges runs = copies.toRanges(new PinnedHostRanges(), new AllocationTable());
        return threshold.copies(copies.bytes() / runs.count(), runs.count()) ? null : free.poll();
    }

    void isFree(StagingRoom room) {
        free.add(room);
    }

    /// {@inheritDoc}
    ///
    /// @throws DeviceException when the device refuses; what it still has goes with the driver, and
    ///     host memory that it may still read stays for good
    @Override
    public void close() {
        holdings.releaseAll();
        arena.close();
    }
}
