package io.kvcache.gpu.paging;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Pieces for a kernel: where each comes from and goes to, in host memory and then on the device.
///
/// There is one list in either place, and lists may go to different streams. In host memory the next is
/// written once the one before was brought to the device; on the device the next stream itself waits until
/// the kernel before has done with its list.
///
/// **Threads.** The driver's.
final class CopyList implements AutoCloseable {

    static final long MAX_WAIT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final DeviceDriver driver;
    private final long maxWaitNanos;
    private final GpuKernels kernels;
    private final int capacity;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment addresses;
    private final DeviceSpan deviceAddresses;
    private final DeviceEvent uploaded;
    private final DeviceEvent copied;
    private int count;

    /// @param most pieces at a time
    /// @param longestNanos that the device may take for what it has; longer is a hang
    /// @throws DeviceException when the device refuses
    CopyList(DeviceDriver driver, GpuKernels kernels, int most, long longestNanos) {
        this.maxWaitNanos = longestNanos;
        this.driver = driver;
        this.kernels = kernels;
        this.capacity = most;
        addresses = arena.allocate(2L * Long.BYTES * most, Long.BYTES);
        ResourceScope taken = new ResourceScope();
        taken.register(arena::close);
        try {
            deviceAddresses = taken.register(driver.allocate(addresses.byteSize()), driver::free);
            uploaded = taken.register(driver.openEvent(), DeviceEvent::close);
            copied = driver.openEvent();
        } catch (DeviceException refused) {
            throw taken.releaseAfter(refused);
        }
    }

    boolean isFull() {
        return count == capacity;
    }

    int count() {
        return count;
    }

    /// Begins anew, once the list before is on the device.
    void clear() {
        await(uploaded);
        count = 0;
    }

    private void await(DeviceEvent event) {
        if (!event.await(maxWaitNanos)) {
            throw new IllegalStateException("the device does not read a list of pieces");
        }
    }

    void add(DeviceAddress from, DeviceAddress to) {
        addresses.setAtIndex(JAVA_LONG, count, from.value());
        addresses.setAtIndex(JAVA_LONG, capacity + (long) count, to.value());
        count++;
    }

    void copy(DeviceStream stream, int pieceBytes) {
        stream.waitFor(copied);
        stream.copyToDevice(addresses, deviceAddresses.address());
        stream.record(uploaded);
        long half = (long) Long.BYTES * capacity;
        kernels.copyPieces(
                stream, deviceAddresses.slice(0, half), deviceAddresses.slice(half, half), pieceBytes, count);
        stream.record(copied);
    }

    /// {@inheritDoc}
    ///
    /// @throws DeviceException when the device cannot say whether it has done; all is given back
    ///     then but the list that it may still read
    /// @throws IllegalStateException when it does not come to an end; the same is given back
    @Override
    public void close() {
        RuntimeException unknown = waited(copied);
        RuntimeException unread = waited(uploaded);
        copied.close();
        uploaded.close();
        try {
            driver.free(deviceAddresses);
        } finally {
            if (unread == null) {
                arena.close();
            }
        }
        if (unknown != null) {
            throw unknown;
        }
    }

    private @Nullable RuntimeException waited(DeviceEvent event) {
        try {
            await(event);
            return null;
        } catch (DeviceException | IllegalStateException refused) {
            return refused;
        }
    }
}
