package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.AllocationTable;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceInfo;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceProgram;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.DeviceThreadBinding;
import io.kvcache.gpu.driver.PinnedHostRanges;
import io.kvcache.gpu.driver.ResourceCounts;
import io.kvcache.gpu.driver.VirtualMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/// A pretended device in plain Java: no GPU, no native code, and yet truly asynchronous, as each stream
/// has a thread.
///
/// Its copies say nothing about the speed of any GPU.
public final class FakeDeviceDriver implements DeviceDriver {

    /// A free waits for what is on its way, as a GPU's does; longer than this is a hang.
    private static final long MAX_DRAIN_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final FakeDeviceMemory space;
    private final FakeDeviceState fakeDeviceState;
    private final PinnedHostRanges pinnedRanges = new PinnedHostRanges();
    private final DeviceThreadBinding thread = new DeviceThreadBinding();
    private final Set<FakeDeviceStream> streams = new HashSet<>();
    private final List<FakeDeviceStream> closedStreams = new ArrayList<>();
    private final Set<FakeDeviceEvent> events = new HashSet<>();
    private int opened;
    private boolean closed;

    private FakeDeviceDriver(long totalBytes, SimulatedLatency simulatedLatency) {
        space = new FakeDeviceMemory(totalBytes);
        fakeDeviceState = new FakeDeviceState(simulatedLatency);
    }

    /// A device with so much memory, taken from the host as it is allocated.
    public static FakeDeviceDriver open(long totalBytes) {
        return open(totalBytes, SimulatedLatency.FULL);
    }

    /// A device of a certain pace.
    public static FakeDeviceDriver open(long totalBytes, SimulatedLatency simulatedLatency) {
        if (totalBytes < 1) {
            throw new IllegalArgumentException("a device with " + totalBytes + " bytes; it takes 1 and up");
        }
        return new FakeDeviceDriver(totalBytes, simulatedLatency);
    }

    void enter() {
        if (closed) {
            throw new IllegalStateException("the device is closed");
        }
        thread.bindCurrentThread();
        fakeDeviceState.requireHealthy();
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
            fakeDeviceState.requireHealthy();
            if (System.nanoTime() - since > MAX_DRAIN_NANOS) {
                throw new DeviceException(DeviceError.DEVICE_LOST, "free", "what is on its way does not end");
            }
            Thread.onSpinWait();
        }
    }

    @Override
    public void adopt(DeviceSpan span) {
        enter();
        throw new DeviceException(DeviceError.NOT_SUPPORTED, "adopt", "nobody else has memory of this device");
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

    @Override
    public void unregister(MemorySegment host) {
        enter();
        pinnedRanges.remove(host);
    }

    @Override
    public DeviceStream openStream(Priority priority) {
        enter();
        FakeDeviceStream stream = new FakeDeviceStream(this, fakeDeviceState, opened++);
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
        FakeDeviceEvent event = new FakeDeviceEvent(this, fakeDeviceState);
        events.add(event);
        return event;
    }

    void forget(FakeDeviceStream stream) {
        streams.remove(stream);
        closedStreams.add(stream);
    }

    void forget(FakeDeviceEvent event) {
        events.remove(event);
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
        fakeDeviceState.close();
        streams.forEach(FakeDeviceStream::abandon);
        closedStreams.forEach(FakeDeviceStream::abandon);
        space.close();
        if (!fakeDeviceState.hasFailed() && !left.equals(ResourceCounts.NONE)) {
            throw new IllegalStateException("the device was closed before all was given back: " + left);
        }
    }
}
