package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.CopyBatch.CopyDirection;
import io.kvcache.gpu.driver.CopyBatch.CopyRanges;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceProgram.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.PinnedHostRanges;
import io.kvcache.gpu.host.FakeDeviceDriver.FakeDeviceEvent;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

/// A queue of copies and a thread that makes them, one after the other, as late as the pace says.
final class FakeDeviceStream implements DeviceStream {

    private final FakeDeviceDriver driver;
    private final BlockingQueue<StreamTask> queue = new LinkedBlockingQueue<>();
    private final AtomicLong done = new AtomicLong();
    private final Thread thread;
    private long submitted;
    private boolean closed;
    private volatile boolean ended;

    private interface StreamTask {

        void run() throws InterruptedException;
    }

    FakeDeviceStream(FakeDeviceDriver driver, int number) {
        this.driver = driver;
        thread = Thread.ofPlatform()
                .daemon(true)
                .name("kvcache-host-stream-" + number)
                .start(this::runTasks);
    }

    private void runTasks() {
        try {
            while (!ended || !queue.isEmpty()) {
                StreamTask next = queue.take();
                driver.delayTask();
                if (!driver.isStopped()) {
                    next.run();
                }
                done.incrementAndGet();
                driver.signalAll();
            }
        } catch (InterruptedException closing) {
            done.set(Long.MAX_VALUE);
        } catch (RuntimeException failed) {
            driver.fail(new DeviceException(DeviceError.ILLEGAL_ACCESS, "stream", String.valueOf(failed)));
            done.set(Long.MAX_VALUE);
        }
    }

    private void submit(StreamTask streamTask) {
        submitted++;
        queue.add(streamTask);
    }

    private void enter() {
        driver.enter();
        if (closed) {
            throw new IllegalStateException("the stream is closed");
        }
    }

    @Override
    public void copyToDevice(MemorySegment from, DeviceAddress to) {
        enter();
        PinnedHostRanges.requireSource(from);
        MemorySegment target = driver.memory("toDevice", to, from.byteSize());
        submit(() -> target.copyFrom(from));
    }

    @Override
    public void copyToHost(DeviceAddress from, MemorySegment to) {
        enter();
        PinnedHostRanges.requireTarget(to);
        MemorySegment source = driver.memory("toHost", from, to.byteSize());
        submit(() -> to.copyFrom(source));
    }

    @Override
    public void copyWithinDevice(DeviceAddress from, DeviceAddress to, long bytes) {
        enter();
        MemorySegment source = driver.memory("within", from, bytes);
        MemorySegment target = driver.memory("within", to, bytes);
        submit(() -> target.copyFrom(source));
    }

    @Override
    public void copy(CopyBatch batch) {
        enter();
        CopyRanges runs = batch.toRanges(driver.pinnedRanges(), driver.allocations());
        List<StreamTask> copies = new ArrayList<>();
        for (int i = 0; i < runs.count(); i++) {
            MemorySegment source = side(runs, runs.from(i), i, CopyDirection.TO_DEVICE);
            MemorySegment target = side(runs, runs.to(i), i, CopyDirection.TO_HOST);
            copies.add(() -> target.copyFrom(source));
        }
        submit(() -> {
            for (StreamTask copy : copies) {
                copy.run();
            }
        });
    }

    /// Memory of the host's when the copies go in this direction, else of the device's.
    private MemorySegment side(CopyRanges runs, long address, int index, CopyDirection host) {
        return runs.direction() == host
                ? hostMemory(address, runs.bytes(index))
                : driver.memory("copy", new DeviceAddress(address), runs.bytes(index));
    }

    @SuppressWarnings("restricted") // A run covers pieces that lie beside each other, each of them a segment.
    private static MemorySegment hostMemory(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    @Override
    public void fill(DeviceSpan span, byte value) {
        enter();
        MemorySegment target = driver.memory("fill", span.address(), span.bytes());
        submit(() -> target.fill(value));
    }

    @Override
    public void launch(DeviceKernel kernel, int groups, int threads, long... arguments) {
        enter();
        throw new DeviceException(DeviceError.NOT_SUPPORTED, "launch", "host memory runs no device code");
    }

    @Override
    public void record(DeviceEvent event) {
        enter();
        FakeDeviceEvent marked = driver.requireOwned(event);
        long number = marked.addMark();
        submit(() -> marked.markReached(number));
    }

    @Override
    public void waitFor(DeviceEvent event) {
        enter();
        FakeDeviceEvent awaited = driver.requireOwned(event);
        long number = awaited.markCount();
        submit(() -> driver.awaitCondition(() -> awaited.reached(number)));
    }

    @Override
    public boolean isIdle() {
        enter();
        return isDrained();
    }

    boolean isDrained() {
        return done.get() >= submitted;
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        end();
        driver.forget(this);
    }

    private void end() {
        submit(() -> ended = true);
    }

    /// Ends the thread, whatever it does; waits for the copy it is at.
    void abandon() {
        thread.interrupt();
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException later) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
