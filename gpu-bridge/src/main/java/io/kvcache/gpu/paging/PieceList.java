package io.kvcache.gpu.paging;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Pieces for a kernel: where each comes from and goes to, in host memory and then on the device.
///
/// There is one list in either place, and lists may go to different streams. In host memory the next is
/// written once the one before was brought to the device; on the device the next stream itself waits until
/// the kernel before has done with its list.
///
/// **Threads.** The driver's.
final class PieceList implements AutoCloseable {

    static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final DeviceDriver driver;
    private final long longestNanos;
    private final GpuKernels kernels;
    private final int most;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment places;
    private final DeviceSpan onDevice;
    private final DeviceEvent brought;
    private final DeviceEvent copied;
    private int count;

    /// @param most pieces at a time
    /// @param longestNanos that the device may take for what it has; longer is a hang
    /// @throws DeviceException when the device refuses
    PieceList(DeviceDriver driver, GpuKernels kernels, int most, long longestNanos) {
        this.longestNanos = longestNanos;
        this.driver = driver;
        this.kernels = kernels;
        this.most = most;
        places = arena.allocate(2L * Long.BYTES * most, Long.BYTES);
        Deque<Runnable> taken = new ArrayDeque<>();
        taken.push(arena::close);
        try {
            DeviceSpan span = driver.allocate(places.byteSize());
            taken.push(() -> driver.free(span));
            DeviceEvent first = driver.openEvent();
            taken.push(first::close);
            copied = driver.openEvent();
            brought = first;
            onDevice = span;
        } catch (DeviceException refused) {
            taken.forEach(Runnable::run);
            throw refused;
        }
    }

    boolean full() {
        return count == most;
    }

    int count() {
        return count;
    }

    /// Begins anew, once the list before is on the device.
    void clear() {
        await(brought);
        count = 0;
    }

    private void await(DeviceEvent event) {
        if (!event.await(longestNanos)) {
            throw new IllegalStateException("the device does not read a list of pieces");
        }
    }

    void add(DeviceAddress from, DeviceAddress to) {
        places.setAtIndex(JAVA_LONG, count, from.value());
        places.setAtIndex(JAVA_LONG, most + (long) count, to.value());
        count++;
    }

    /// Has a kernel copy them.
    void copy(DeviceStream stream, int pieceBytes) {
        stream.waitFor(copied);
        stream.copyToDevice(places, onDevice.address());
        stream.record(brought);
        long half = (long) Long.BYTES * most;
        kernels.copyPieces(stream, onDevice.slice(0, half), onDevice.slice(half, half), pieceBytes, count);
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
        RuntimeException unread = waited(brought);
        copied.close();
        brought.close();
        try {
            driver.free(onDevice);
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
