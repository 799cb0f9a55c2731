package io.kvcache.gpu.paging;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;

/// Size from which the copy engine moves pieces within a device; a kernel moves smaller ones.
///
/// The threshold differs from GPU to GPU (from 8 to 28 KiB as published), so it is measured at the start.
///
/// @param pieceBytes the smallest piece that is copied; 0 copies all
public record CopyThreshold(int pieceBytes) {

    /// Everything is copied, as by a device that runs no code.
    public static final CopyThreshold ALWAYS_COPY = new CopyThreshold(0);

    /// Fewer pieces are copied whatever their size: a launch costs more than they do.
    static final int MIN_PIECES = 16;

    static final int MIN_PIECE_BYTES = 4 << 10;
    static final int MAX_PIECE_BYTES = 64 << 10;

    /// Result when copies are never as fast.
    static final int MAX_THRESHOLD_BYTES = 2 * MAX_PIECE_BYTES;

    static final int MEASURED_PIECES = 128;
    private static final int ATTEMPTS = 3;
    private static final long MAX_WAIT_NANOS = TimeUnit.SECONDS.toNanos(30);

    public CopyThreshold {
        if (pieceBytes < 0) {
            throw new IllegalArgumentException("a threshold of " + pieceBytes + " bytes; it takes 0 and up");
        }
    }

    boolean usesCopyEngine(long bytes, long pieces) {
        return bytes >= pieceBytes || pieces < MIN_PIECES;
    }

    /// Measures it: the smallest of 4, 8, … 64 KiB of which 128 scattered pieces are copied at least as fast
    /// as a kernel does it, in the best of three; 128 KiB when none is. Takes 32 MiB of the device
    /// meanwhile.
    ///
    /// @param nanos a clock that never goes back
    /// @throws DeviceException when the device refuses
    public static CopyThreshold measure(DeviceDriver driver, GpuKernels kernels, LongSupplier nanos) {
        DeviceSpan memory = driver.allocate(4L * MEASURED_PIECES * MAX_PIECE_BYTES);
        try (DeviceStream stream = driver.openStream(Priority.NORMAL);
                DeviceEvent event = driver.openEvent();
                CopyList pieces = new CopyList(driver, kernels, MEASURED_PIECES, CopyList.MAX_WAIT_NANOS)) {
            stream.fill(memory, (byte) 0);
            return search(bytes -> {
                CopyBatch batch = CopyBatch.within();
                pieces.clear();
                for (int i = 0; i < MEASURED_PIECES; i++) {
                    long at = 2L * i * bytes; // with gaps, so that no two become one
                    DeviceSpan from = memory.slice(at, bytes);
                    DeviceSpan to = memory.slice(memory.bytes() / 2 + at, bytes);
                    batch.add(from.address(), to.address(), bytes);
                    pieces.add(from.address(), to.address());
                }
                long copying = bestTime(nanos, stream, event, () -> stream.copy(batch));
                return copying <= bestTime(nanos, stream, event, () -> pieces.copy(stream, bytes));
            });
        } finally {
            driver.free(memory);
        }
    }

    /// The smallest of 4, 8, … 64 KiB that copies move at least as fast as a kernel, or 128 KiB.
    static CopyThreshold search(IntPredicate copiesAsFast) {
        for (int bytes = MIN_PIECE_BYTES; bytes <= MAX_PIECE_BYTES; bytes *= 2) {
            if (copiesAsFast.test(bytes)) {
                return new CopyThreshold(bytes);
            }
        }
        return new CopyThreshold(MAX_THRESHOLD_BYTES);
    }

    /// The best of three.
    ///
    /// @throws DeviceException with [DeviceError#REFUSED] when one does not end in 30 s; what the work reads
    ///     must not be written to then
    static long bestTime(LongSupplier nanos, DeviceStream stream, DeviceEvent event, Runnable work) {
        long best = Long.MAX_VALUE;
        for (int i = 0; i < ATTEMPTS; i++) {
            long since = nanos.getAsLong();
            work.run();
            stream.record(event);
            if (!event.await(MAX_WAIT_NANOS)) {
                throw new DeviceException(
                        DeviceError.REFUSED, "measure", "what is copied to see how fast that is does not end");
            }
            best = Math.min(best, nanos.getAsLong() - since);
        }
        return best;
    }
}
