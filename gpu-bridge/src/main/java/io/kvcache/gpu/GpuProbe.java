package io.kvcache.gpu;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.DeviceInfo;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;

/// Describes each NVIDIA GPU in one line: name, driver, memory, whether our kernels load, and the speed of a bare copy
/// in both directions.
final class GpuProbe {

    private static final int MAX_DEVICES = 64;
    private static final int COPIED_BYTES = 64 << 20;
    private static final int PAGE_BYTES = 4096;
    private static final int ROUNDS = 3;
    private static final long COPY_TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final double GIBIBYTE = 1L << 30;

    private final IntFunction<DeviceDriver> devices;

    /// @param devices opens a device by its number
    GpuProbe(IntFunction<DeviceDriver> devices) {
        this.devices = devices;
    }

    /// Returns one line per device, or a single line that says why none can be used.
    List<String> describeDevices() {
        List<String> lines = new ArrayList<>();
        for (int ordinal = 0; ordinal < MAX_DEVICES; ordinal++) {
            try (DeviceDriver driver = devices.apply(ordinal)) {
                lines.add(line(driver));
            } catch (DeviceException refused) {
                if (ordinal > 0 && refused.error() == DeviceError.NO_DEVICE) {
                    break; // the one before was the last
                }
                lines.add(String.valueOf(refused.getMessage()));
                if (ordinal == 0) {
                    break;
                }
            } catch (IllegalStateException bug) { // the lines of the other devices are still useful
                lines.add("GPU " + ordinal + ": " + bug.getMessage());
            }
        }
        return lines;
    }

    private static String line(DeviceDriver driver) {
        try {
            DeviceInfo info = driver.info();
            double[] gigabytes = copySpeeds(driver);
            return String.format(
                    Locale.ROOT,
                    "%s, %s, compute %s, %.1f GiB in all, %.1f GiB free, kernels %s, %.1f GB/s to it, %.1f GB/s back",
                    info.name(),
                    info.driver(),
                    info.capability(),
                    info.totalBytes() / GIBIBYTE,
                    driver.freeMemoryBytes() / GIBIBYTE,
                    kernels(driver),
                    gigabytes[0],
                    gigabytes[1]);
        } catch (DeviceException failed) {
            return String.valueOf(failed.getMessage());
        }
    }

    private static String kernels(DeviceDriver driver) {
        try {
            GpuKernels.load(driver, 1).close();
            return "load";
        } catch (DeviceException refused) {
            return refused.error().name();
        }
    }

    /// Copies 64 MiB to the device and back. Returns the median speeds in GB/s, to the device first.
    private static double[] copySpeeds(DeviceDriver driver) {
        ResourceScope holdings = new ResourceScope();
        try (Arena arena = Arena.ofShared()) {
            MemorySegment host = arena.allocate(COPIED_BYTES, PAGE_BYTES);
            host.fill((byte) 1); // so that its pages are there
            double[] medians;
            try {
                if (driver.tryRegister(host) == null) { // copies are slower without
                    holdings.register(host, driver::unregister);
                }
                DeviceSpan span = holdings.register(driver.allocate(COPIED_BYTES), driver::free);
                DeviceStream stream = holdings.register(driver.openStream(Priority.HIGH), DeviceStream::close);
                DeviceEvent done = holdings.register(driver.openEvent(), DeviceEvent::close);
                medians = new double[] {
                    median(() -> stream.copyToDevice(host, span.address()), stream, done),
                    median(() -> stream.copyToHost(span.address(), host), stream, done)
                };
            } catch (DeviceException failed) {
                throw holdings.releaseAfter(failed);
            }
            holdings.releaseAll();
            return medians;
        }
    }

    /// Measures after one copy that does not count.
    private static double median(Runnable copy, DeviceStream stream, DeviceEvent done) {
        double[] gigabytes = new double[ROUNDS];
        for (int round = -1; round < ROUNDS; round++) {
            long start = System.nanoTime();
            copy.run();
            stream.record(done);
            if (!done.await(COPY_TIMEOUT_NANOS)) {
                throw new DeviceException(DeviceError.OTHER, "copy", "no end within a minute");
            }
            if (round >= 0) {
                gigabytes[round] = (double) COPIED_BYTES / (System.nanoTime() - start);
            }
        }
        Arrays.sort(gigabytes);
        return gigabytes[ROUNDS / 2];
    }
}
