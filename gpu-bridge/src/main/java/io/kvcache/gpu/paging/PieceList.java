package io.kvcache.gpu.paging;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.Kernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;

/// Pieces for a kernel: where each comes from and goes to, in host memory and then on the device. One list
/// is on its way at a time; the next waits for it.
///
/// **Threads.** The driver's.
final class PieceList implements AutoCloseable {

    private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final DeviceDriver driver;
    private final Kernels kernels;
    private final int most;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment places;
    private final DeviceSpan onDevice;
    private final DeviceEvent read;
    private int count;

    /// @param most pieces at a time
    /// @throws DeviceException when the device refuses
    PieceList(DeviceDriver driver, Kernels kernels, int most) {
        this.driver = driver;
        this.kernels = kernels;
        this.most = most;
        places = arena.allocate(2L * Long.BYTES * most, Long.BYTES);
        onDevice = driver.allocate(places.byteSize());
        try {
            read = driver.openEvent();
        } catch (DeviceException refused) {
            driver.free(onDevice);
            arena.close();
            throw refused;
        }
    }

    boolean full() {
        return count == most;
    }

    int count() {
        return count;
    }

    /// Begins anew, once the device has read the list before.
    void clear() {
        if (!read.await(LONGEST_NANOS)) {
            throw new IllegalStateException("the device does not read a list of pieces");
        }
        count = 0;
    }

    void add(DeviceAddress from, DeviceAddress to) {
        places.setAtIndex(JAVA_LONG, count, from.value());
        places.setAtIndex(JAVA_LONG, most + (long) count, to.value());
        count++;
    }

    /// Has a kernel copy them.
    void copy(DeviceStream stream, int pieceBytes) {
        stream.toDevice(places, onDevice.address());
        stream.record(read);
        long half = (long) Long.BYTES * most;
        kernels.copyPieces(stream, onDevice.slice(0, half), onDevice.slice(half, half), pieceBytes, count);
    }

    @Override
    public void close() {
        clear();
        read.close();
        driver.free(onDevice);
        arena.close();
    }
}
