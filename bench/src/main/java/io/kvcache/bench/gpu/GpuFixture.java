package io.kvcache.bench.gpu;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.paging.HostPageCopier;
import io.kvcache.gpu.paging.PageCopier;
import io.kvcache.gpu.paging.PageCopier.DeviceBlock;
import io.kvcache.gpu.paging.PagedLayout;
import io.kvcache.gpu.paging.PieceList;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// A device with memory on both sides, two streams, and copies that end before they return.
final class GpuFixture implements AutoCloseable {

    private static final int PAGE = 4096;
    private static final long MAX_WAIT_NANOS = TimeUnit.SECONDS.toNanos(60);

    final DeviceDriver driver;
    final long bytes;
    final MemorySegment source;
    final MemorySegment target;
    final DeviceSpan first;
    final DeviceSpan second;
    private final DeviceStream up;
    private final DeviceStream down;
    private final DeviceEvent upDone;
    private final DeviceEvent downDone;
    private final Arena arena = Arena.ofShared();
    private final ResourceScope holdings = new ResourceScope();
    private int fixed;
    private @Nullable HostPageCopier copier;
    private final PageCopier pageCopier;

    /// @param bytes of each of the four spans
    /// @throws DeviceException when the device has not so much; nothing is taken then
    GpuFixture(DeviceDriver driver, long bytes) {
        this.driver = driver;
        this.bytes = bytes;
        source = arena.allocate(bytes, PAGE);
        target = arena.allocate(bytes, PAGE);
        source.fill((byte) 0x3C); // a bf16 of a usual size, and pages that are there
        target.fill((byte) 1);
        try {
            pinHostMemory(source);
            pinHostMemory(target);
            first = holdings.register(driver.allocate(bytes), driver::free);
            second = holdings.register(driver.allocate(bytes), driver::free);
            up = holdings.register(driver.openStream(Priority.HIGH), DeviceStream::close);
            down = holdings.register(driver.openStream(Priority.HIGH), DeviceStream::close);
            upDone = holdings.register(driver.openEvent(), DeviceEvent::close);
            downDone = holdings.register(driver.openEvent(), DeviceEvent::close);
            openCopier();
            pageCopier = holdings.register(PageCopier.calibrated(driver), PageCopier::close);
        } catch (DeviceException refused) {
            DeviceException why = holdings.releaseAfter(refused);
            arena.close();
            throw why;
        }
    }

    /// Registers host memory with the device. If the driver refuses, copies use unpinned memory, and [#isPinned]
    /// returns false.
    private void pinHostMemory(MemorySegment memory) {
        try {
            driver.register(memory);
            holdings.register(memory, driver::unregister);
            fixed++;
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
        }
    }

    /// As for an engine: none where the device runs no code, or may not register host memory.
    private void openCopier() {
        if (!isPinned()) {
            return;
        }
        try {
            copier = HostPageCopier.open(driver, unknown -> unknown.measure(System::nanoTime));
            holdings.register(copier, HostPageCopier::close);
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
        }
    }

    /// Returns a list for a kernel that moves these pieces, or null when they are copied.
    @Nullable
    PieceList acquireList(PagedLayout layout, List<MemorySegment> hostBlocks, List<int[]> pages) {
        return copier == null ? null : copier.acquireList(layout, hostBlocks, pages);
    }

    /// Returns whether host memory is registered with the device.
    boolean isPinned() {
        return fixed == 2;
    }

    DeviceStream stream() {
        return up;
    }

    void copy(CopyBatch batch) {
        up.copy(batch);
        awaitIdle();
    }

    /// One behind the other, each handed over while the device is at those before.
    void copy(List<CopyBatch> batches) {
        batches.forEach(up::copy);
        awaitIdle();
    }

    /// Both at once.
    void copy(CopyBatch there, CopyBatch home) {
        up.copy(there);
        down.copy(home);
        awaitIdle();
    }

    /// Moves blocks on the device to pages, or pages to blocks.
    void moveWithinDevice(PagedLayout layout, List<DeviceBlock> blocks, boolean out) {
        if (out) {
            pageCopier.gather(up, layout, blocks);
        } else {
            pageCopier.scatter(up, layout, blocks);
        }
        awaitIdle();
    }

    void copyToDevice() {
        up.copyToDevice(source, first.address());
        awaitIdle();
    }

    void copyToHost() {
        up.copyToHost(second.address(), target);
        awaitIdle();
    }

    void copyBothWays() {
        up.copyToDevice(source, first.address());
        down.copyToHost(second.address(), target);
        awaitIdle();
    }

    void copyWithinDevice() {
        up.copyWithinDevice(first.address(), second.address(), bytes);
        awaitIdle();
    }

    /// Waits until both streams are done.
    void awaitIdle() {
        up.record(upDone);
        down.record(downDone);
        if (!upDone.await(MAX_WAIT_NANOS) || !downDone.await(MAX_WAIT_NANOS)) {
            throw new IllegalStateException("the device did not end a copy within a minute");
        }
    }

    @Override
    public void close() {
        holdings.releaseAll();
        arena.close();
    }
}
