package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.AllocationTable;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.DeviceInfo;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceProgram;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.DeviceThreadBinding;
import io.kvcache.gpu.driver.PinnedHostRanges;
import io.kvcache.gpu.driver.VirtualMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// A pretended device in plain Java: no GPU, no native code, and yet truly asynchronous, as each stream
/// has a thread.
///
/// Drivers of one process are of one device as far as memory goes: each takes what another has allocated
/// ([#adopt]). Its copies say nothing about the speed of any GPU.
public final class FakeDeviceDriver implements DeviceDriver {

    /// A free waits for what is on its way, as a GPU's does; longer than this is a hang.
    private static final long MAX_DRAIN_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final FakeDeviceMemory space;
    private final Runnable taskDelay;
    private final Object changed = new Object();
    private final PinnedHostRanges pinnedRanges = new PinnedHostRanges();
    private final DeviceThreadBinding thread = new DeviceThreadBinding();
    private final Set<FakeDeviceStream> streams = new HashSet<>();
    private final List<FakeDeviceStream> closedStreams = new ArrayList<>();
    private final Set<FakeDeviceEvent> events = new HashSet<>();
    private volatile @Nullable DeviceException failure;
    private int opened;
    private volatile boolean closed;

    private FakeDeviceDriver(long totalBytes, Runnable taskDelay) {
        space = new FakeDeviceMemory(totalBytes);
        this.taskDelay = taskDelay;
    }

    /// Opens a device of this size, whose memory is taken from the host as it is allocated.
    public static FakeDeviceDriver open(long totalBytes) {
        return open(totalBytes, () -> {});
    }

    /// A device that is late.
    ///
    /// @param taskDelay run by each stream before each piece of work; returns when that may begin, or when
    ///     its thread was interrupted
    public static FakeDeviceDriver open(long totalBytes, Runnable taskDelay) {
        if (totalBytes < 1) {
            throw new IllegalArgumentException("a device with " + totalBytes + " bytes; it takes 1 and up");
        }
        return new FakeDeviceDriver(totalBytes, taskDelay);
    }

    void enter() {
        if (closed) {
            throw new IllegalStateException("the device is closed");
        }
        thread.bindCurrentThread();
        requireHealthy();
    }

    PinnedHostRanges pinnedRanges() {
        return pinnedRanges;
    }

    AllocationTable allocations() {
        return space.allocations();
    }

    MemorySegment memory(String call, DeviceAddress address, long bytes) {
        return space.memory(call, address, bytes);
    }

    FakeDeviceEvent requireOwned(DeviceEvent event) {
        if (event instanceof FakeDeviceEvent mine && events.contains(mine)) {
            return mine;
        }
        throw new DeviceException(DeviceError.BAD_REQUEST, "event", "closed, or of another device");
    }

    @Override
    public DeviceInfo info() {
        enter();
        return new DeviceInfo("host memory", "", space.totalBytes(), "", "plain Java");
    }

    @Override
    public long freeMemoryBytes() {
        enter();
        return space.freeBytes();
    }

    @Override
    public DeviceSpan allocate(long bytes) {
        enter();
        return space.allocate(bytes);
    }

    @Override
    public void free(DeviceSpan span) {
        enter();
        space.requireSlab(span);
        drain();
        space.free(span);
    }

    private void drain() {
        long since = System.nanoTime();
        closedStreams.removeIf(FakeDeviceStream::isDrained);
        while (!(streams.stream().allMatch(FakeDeviceStream::isDrained)
                && closedStreams.stream().allMatch(FakeDeviceStream::isDrained))) {
            requireHealthy();
            if (System.nanoTime() - since > MAX_DRAIN_NANOS) {
                throw new DeviceException(DeviceError.DEVICE_LOST, "free", "what is on its way does not end");
            }
            Thread.onSpinWait();
        }
    }

    @Override
    public void adopt(DeviceSpan span) {
        enter();
        space.adopt(span);
    }

    @Override
    public void disown(DeviceSpan span) {
        enter();
        space.disown(span);
    }

    @Override
    public void register(MemorySegment host) {
        enter();
        PinnedHostRanges.requireSource(host);
        pinnedRanges.add(host);
    }

    /// {@inheritDoc}
    ///
    /// False, as this device runs no code.
    @Override
    public boolean isReachable(MemorySegment host) {
        return false;
    }

    @Override
    public void unregister(MemorySegment host) {
        enter();
        pinnedRanges.remove(host);
    }

    @Override
    public DeviceStream openStream(Priority priority) {
        enter();
        FakeDeviceStream stream = new FakeDeviceStream(this, opened++);
        streams.add(stream);
        return stream;
    }

    @Override
    public DeviceProgram load(String code) {
        enter();
        throw new DeviceException(DeviceError.NOT_SUPPORTED, "load", "host memory runs no device code");
    }

    @Override
    public VirtualMemory virtualMemory() {
        enter();
        throw new DeviceException(DeviceError.NOT_SUPPORTED, "virtualMemory", "host memory does not move");
    }

    @Override
    public DeviceIpc ipc() {
        enter();
        throw new DeviceException(DeviceError.NOT_SUPPORTED, "sharing", "host memory of one process");
    }

    @Override
    public DeviceEvent openEvent() {
        enter();
        FakeDeviceEvent event = new FakeDeviceEvent();
        events.add(event);
        return event;
    }

    void forget(FakeDeviceStream stream) {
        streams.remove(stream);
        closedStreams.add(stream);
    }

    @Override
    public ResourceCounts resourceCounts() {
        return new ResourceCounts(
                space.allocationCount(),
                space.usedBytes(),
                pinnedRanges.count(),
                streams.size(),
                events.size(),
                0,
                0,
                0);
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        ResourceCounts left = resourceCounts();
        closed = true;
        signalAll();
        streams.forEach(FakeDeviceStream::abandon);
        closedStreams.forEach(FakeDeviceStream::abandon);
        space.close();
        if (failure == null && !left.equals(ResourceCounts.NONE)) {
            throw new IllegalStateException("the device was closed before all was given back: " + left);
        }
    }

    void delayTask() {
        taskDelay.run();
    }

    /// Something failed: no stream does anything more. Any thread.
    void fail(DeviceException cause) {
        if (failure == null) {
            failure = cause;
        }
        signalAll();
    }

    /// Returns whether streams must drop their work. Any thread.
    boolean isStopped() {
        return closed || failure != null;
    }

    private void requireHealthy() {
        DeviceException cause = failure;
        if (cause != null) {
            throw new DeviceException(cause.error(), "after a failure", String.valueOf(cause.getMessage()));
        }
    }

    /// Wakes streams that wait. Any thread.
    void signalAll() {
        synchronized (changed) {
            changed.notifyAll();
        }
    }

    /// Waits until something is so, or streams have to stop. Any thread.
    void awaitCondition(BooleanSupplier condition) throws InterruptedException {
        synchronized (changed) {
            while (!condition.getAsBoolean() && !isStopped()) {
                changed.wait();
            }
        }
    }

    /// A count of how often it was recorded, and of how often that was reached.
    final class FakeDeviceEvent implements DeviceEvent {

        private volatile long recorded;
        private volatile long reached;
        private boolean closed;

        /// Counts one more mark; the driver's thread.
        long addMark() {
            requireOpen();
            long number = recorded + 1;
            recorded = number;
            return number;
        }

        long markCount() {
            requireOpen();
            return recorded;
        }

        /// A stream got to a mark; only the last one counts, and it may be in another stream than those before.
        void markReached(long number) {
            synchronized (this) {
                reached = Math.max(reached, number);
            }
            signalAll();
        }

        boolean reached(long number) {
            return reached >= number;
        }

        @Override
        public boolean isReached() {
            enter();
            requireOpen();
            return reached(recorded);
        }

        private void requireOpen() {
            if (closed) {
                throw new IllegalStateException("the event is closed");
            }
        }

        @Override
        public void close() {
            if (!closed) {
                closed = true;
                events.remove(this);
            }
        }
    }
}
