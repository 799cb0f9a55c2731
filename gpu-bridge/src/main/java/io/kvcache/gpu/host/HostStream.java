package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.CopyDirection;
import io.kvcache.gpu.driver.CopyRanges;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.KernelArguments;
import io.kvcache.gpu.driver.PinnedHostRanges;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

/// A queue of copies and a thread that makes them, one after the other, as late as the pace says.
final class HostStream implements DeviceStream {

    private final HostDriver driver;
    private final Shared shared;
    private final BlockingQueue<Work> queue = new LinkedBlockingQueue<>();
    private final AtomicLong done = new AtomicLong();
    private final Thread thread;
    private long given;
    private boolean closed;
    private volatile boolean ended;

    /// One thing to do, on the stream's thread.
    private interface Work {

        void run() throws InterruptedException;
    }

    HostStream(HostDriver driver, Shared shared, int number) {
        this.driver = driver;
        this.shared = shared;
        thread = Thread.ofPlatform()
                .daemon(true)
                .name("kvcache-host-stream-" + number)
                .start(this::work);
    }

    private void work() {
        try {
            while (!ended || !queue.isEmpty()) {
                Work next = queue.take();
                shared.pause();
                if (!shared.over()) {
                    next.run();
                }
                done.incrementAndGet();
                shared.announce();
            }
        } catch (InterruptedException closing) {
            done.set(Long.MAX_VALUE);
        } catch (RuntimeException failed) {
            shared.fail(new DeviceException(DeviceError.ILLEGAL_ACCESS, "stream", String.valueOf(failed)));
            done.set(Long.MAX_VALUE);
        }
    }

    private void give(Work work) {
        given++;
        queue.add(work);
    }

    private void enter() {
        driver.enter();
        if (closed) {
            throw new IllegalStateException("the stream is closed");
        }
    }

    @Override
    public void toDevice(MemorySegment from, DeviceAddress to) {
        enter();
        PinnedHostRanges.requireSource(from);
        MemorySegment target = driver.memory("toDevice", to, from.byteSize());
        give(() -> target.copyFrom(from));
    }

    @Override
    public void toHost(DeviceAddress from, MemorySegment to) {
        enter();
        PinnedHostRanges.requireTarget(to);
        MemorySegment source = driver.memory("toHost", from, to.byteSize());
        give(() -> to.copyFrom(source));
    }

    @Override
    public void within(DeviceAddress from, DeviceAddress to, long bytes) {
        enter();
        MemorySegment source = driver.memory("within", from, bytes);
        MemorySegment target = driver.memory("within", to, bytes);
        give(() -> target.copyFrom(source));
    }

    @Override
    public void copy(CopyBatch batch) {
        enter();
        CopyRanges runs = batch.toRanges(driver.registered(), driver.slabs());
        List<Work> copies = new ArrayList<>();
        for (int i = 0; i < runs.count(); i++) {
            MemorySegment source = side(runs, runs.from(i), i, CopyDirection.TO_DEVICE);
            MemorySegment target = side(runs, runs.to(i), i, CopyDirection.TO_HOST);
            copies.add(() -> target.copyFrom(source));
        }
        give(() -> {
            for (Work copy : copies) {
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
        give(() -> target.fill(value));
    }

    @Override
    public void launch(DeviceKernel kernel, int groups, int threads, KernelArguments arguments) {
        enter();
        throw new DeviceException(DeviceError.NOT_SUPPORTED, "launch", "host memory runs no device code");
    }

    @Override
    public void record(DeviceEvent event) {
        enter();
        HostEvent marked = driver.own(event);
        long number = marked.mark();
        give(() -> marked.reach(number));
    }

    @Override
    public void waitFor(DeviceEvent event) {
        enter();
        HostEvent awaited = driver.own(event);
        long number = awaited.marks();
        give(() -> shared.until(() -> awaited.reached(number)));
    }

    @Override
    public boolean idle() {
        enter();
        return quiet();
    }

    boolean quiet() {
        return done.get() >= given;
    }

    @Override
    public void close() {
        if (closed) {
            throw new IllegalStateException("the stream is closed");
        }
        closed = true;
        end();
        driver.gone(this);
    }

    private void end() {
        give(() -> ended = true);
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
