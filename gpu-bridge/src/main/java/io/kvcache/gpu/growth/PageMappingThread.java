package io.kvcache.gpu.growth;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.PhysicalPages;
import io.kvcache.gpu.driver.VirtualMemory;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Maps pages beside the thread that computes: a driver belongs to one thread, so this has another of the
/// same device, and hands over what it mapped.
///
/// **Threads.** Asked and closed by the pool's.
final class PageMappingThread implements AutoCloseable {

    private static final Logger LOG = System.getLogger(PageMappingThread.class.getName());
    private static final long MAX_CLOSE_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final DeviceDriver driver;
    private final VirtualMemory memory;
    private final ExecutorService thread;

    /// @param driver this one's from here on
    PageMappingThread(DeviceDriver driver) {
        this.driver = driver;
        memory = driver.virtualMemory();
        thread = Executors.newSingleThreadExecutor(
                Thread.ofPlatform().daemon(true).name("kvcache-growth").factory());
    }

    /// Has a page mapped.
    ///
    /// @param page or null for a new one
    /// @return the page once it is mapped, to be taken over; ends with [DeviceException] when the device
    ///     refuses, and a new page is given back then
    CompletableFuture<PhysicalPages> map(DeviceAddress at, @Nullable PhysicalPages page) {
        return CompletableFuture.supplyAsync(() -> page == null ? mapNew(at) : mapGiven(at, page), thread);
    }

    private PhysicalPages mapNew(DeviceAddress at) {
        PhysicalPages page = memory.create(memory.pageBytes());
        try {
            return mapGiven(at, page);
        } catch (DeviceException refused) {
            memory.release(page);
            throw refused;
        }
    }

    private PhysicalPages mapGiven(DeviceAddress at, PhysicalPages page) {
        memory.map(at, page);
        memory.handOver(at, page);
        return page;
    }

    /// Ends the thread, which has nothing to do any more, and gives the driver back. A thread that does
    /// not come back from the device keeps its driver for good.
    ///
    /// @throws IllegalStateException when the driver still had something
    @Override
    public void close() {
        thread.shutdown();
        if (awaitTermination()) {
            driver.close();
        } else {
            LOG.log(Level.ERROR, "the thread that maps pages does not come back from the device: it is left behind");
        }
    }

    private boolean awaitTermination() {
        long since = System.nanoTime();
        boolean interrupted = false;
        while (true) {
            try {
                long left = MAX_CLOSE_NANOS - (System.nanoTime() - since);
                boolean ended = thread.awaitTermination(left, TimeUnit.NANOSECONDS);
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
                return ended;
            } catch (InterruptedException stopped) {
                interrupted = true;
            }
        }
    }
}
