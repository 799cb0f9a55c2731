package io.kvcache.gpu.growth;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DevicePages;
import io.kvcache.gpu.driver.VirtualMemory;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;

/// Maps pages beside the thread that computes: a driver belongs to one thread, so this has another of the same
/// device, and hands over what it mapped.
///
/// **Threads.** Asked and closed by the pool's.
final class MappingThread implements AutoCloseable {

    private final DeviceDriver driver;
    private final VirtualMemory memory;
    private final BlockingQueue<Runnable> asked = new LinkedBlockingQueue<>();
    private final Thread thread;
    private volatile boolean ending;

    /// @param driver this one's from here on
    MappingThread(DeviceDriver driver) {
        this.driver = driver;
        memory = driver.virtualMemory();
        thread = Thread.ofPlatform().daemon(true).name("kvcache-growth").start(this::work);
    }

    private void work() {
        try {
            while (!ending) {
                asked.take().run();
            }
        } catch (InterruptedException nobodys) {
            throw new AssertionError("nobody interrupts this thread", nobodys);
        }
    }

    /// Has a page mapped.
    ///
    /// @param page or null for a new one
    /// @return the page once it is mapped, to be taken over; ends with [DeviceException] when the device refuses,
    ///     and a new page is given back then
    CompletableFuture<DevicePages> map(DeviceAddress at, @Nullable DevicePages page) {
        CompletableFuture<DevicePages> mapped = new CompletableFuture<>();
        asked.add(() -> {
            try {
                mapped.complete(page == null ? mapNew(at) : mapGiven(at, page));
            } catch (RuntimeException refused) {
                mapped.completeExceptionally(refused);
            }
        });
        return mapped;
    }

    private DevicePages mapNew(DeviceAddress at) {
        DevicePages page = memory.create(memory.pageBytes());
        try {
            return mapGiven(at, page);
        } catch (DeviceException refused) {
            memory.release(page);
            throw refused;
        }
    }

    private DevicePages mapGiven(DeviceAddress at, DevicePages page) {
        memory.map(at, page);
        memory.handOver(at, page);
        return page;
    }

    /// Ends the thread, once it has done what it was asked.
    @Override
    public void close() {
        asked.add(() -> ending = true);
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException later) {
                interrupted = true;
            }
        }
        driver.close();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
