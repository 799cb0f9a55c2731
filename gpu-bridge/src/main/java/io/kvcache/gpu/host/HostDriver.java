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
public final class HostDriver implements DeviceDriver {

    /// A free waits for what is on its way, as a GPU's does; longer than this is a hang.
    private static final long LONGEST_DRAIN_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final HostSpace space;
    private final Shared shared;
    private final PinnedHostRanges registered = new PinnedHostRanges();
    private final DeviceThreadBinding thread = new DeviceThreadBinding();
    private final Set<HostStream> streams = new HashSet<>();
    private final List<HostStream> closedStreams = new ArrayList<>();
    private final Set<HostEvent> events = new HashSet<>();
    private int opened;
    private boolean closed;

    private HostDriver(long totalBytes, Pace pace) {
        space = new HostSpace(totalBytes);
        shared = new Shared(pace);
    }

    /// A device with so much memory, taken from the host as it is allocated.
    public static HostDriver open(long totalBytes) {
        return open(totalBytes, Pace.FULL);
    }

    /// A device of a certain pace.
    public static HostDriver open(long totalBytes, Pace pace) {
        if (totalBytes < 1) {
            throw new IllegalArgumentException("a device with " + totalBytes + " bytes; it takes 1 and up");
        }
        return new HostDriver(totalBytes, pace);
    }

    void enter() {
        if (closed) {
            throw new IllegalStateException("the device is closed");
        }
        thread.bindCurrentThread();
        shared.require();
    }

    PinnedHostRanges registered() {
        return registered;
    }

    AllocationTable slabs() {
        return space.all();
    }

    MemorySegment memory(String call, DeviceAddress address, long bytes) {
        return space.memory(call, address, bytes);
    }

    HostEvent own(DeviceEvent event) {
        if (event instanceof HostEvent mine && events.contains(mine)) {
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
    public long freeBytes() {
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
        closedStreams.removeIf(HostStream::quiet);
        while (!(streams.stream().allMatch(HostStream::quiet)
                && closedStreams.stream().allMatch(HostStream::quiet))) {
            shared.require();
            if (System.nanoTime() - since > LONGEST_DRAIN_NANOS) {
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
        registered.add(host);
    }

    @Override
    public void unregister(MemorySegment host) {
        enter();
        registered.remove(host);
    }

    @Override
    public DeviceStream openStream(Priority priority) {
        enter();
        HostStream stream = new HostStream(this, shared, opened++);
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
    public DeviceIpc sharing() {
        enter();
        throw new DeviceException(DeviceError.NOT_SUPPORTED, "sharing", "host memory of one process");
    }

    @Override
    public DeviceEvent openEvent() {
        enter();
        HostEvent event = new HostEvent(this, shared);
        events.add(event);
        return event;
    }

    void gone(HostStream stream) {
        streams.remove(stream);
        closedStreams.add(stream);
    }

    void gone(HostEvent event) {
        events.remove(event);
    }

    @Override
    public ResourceCounts use() {
        return new ResourceCounts(
                space.slabs(), space.usedBytes(), registered.count(), streams.size(), events.size(), 0, 0, 0);
    }

    @Override
    public void close() {
        if (closed) {
            throw new IllegalStateException("the device is closed");
        }
        ResourceCounts left = use();
        closed = true;
        shared.end();
        streams.forEach(HostStream::abandon);
        closedStreams.forEach(HostStream::abandon);
        space.close();
        if (!shared.failed() && !left.equals(ResourceCounts.NONE)) {
            throw new IllegalStateException("the device was closed before all was given back: " + left);
        }
    }
}
