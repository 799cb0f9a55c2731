package io.kvcache.bench.cli;

import io.kvcache.bench.gpu.GpuCell;
import io.kvcache.bench.gpu.GpuComparison;
import io.kvcache.gpu.cuda.CudaDriver;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceInfo;
import io.kvcache.gpu.kernel.Kernels;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.IntFunction;

/// What `kvcache doctor` says of each GPU, in one line: what it is, what is free, whether it takes our
/// kernels, and how fast a copy is.
final class GpuProbe {

    private static final int MOST = 64;
    private static final long COPIED_BYTES = 64L << 20;
    private static final double GIBIBYTE = 1L << 30;

    private GpuProbe() {}

    /// A line for each that there is; when there is none, one that says why.
    static List<String> lines() {
        return lines(CudaDriver::open);
    }

    /// @param devices opens one by its number
    static List<String> lines(IntFunction<DeviceDriver> devices) {
        List<String> lines = new ArrayList<>();
        for (int ordinal = 0; ordinal < MOST; ordinal++) {
            try (DeviceDriver driver = devices.apply(ordinal)) {
                lines.add(line(driver));
            } catch (DeviceException refused) {
                if (ordinal > 0 && refused.error() == DeviceError.NO_DEVICE) {
                    break; // that was the last
                }
                lines.add(String.valueOf(refused.getMessage()));
                if (ordinal == 0) {
                    break;
                }
            } catch (IllegalStateException bug) { // what is said of the others is still of use
                lines.add("GPU " + ordinal + ": " + bug.getMessage());
            }
        }
        return lines;
    }

    private static String line(DeviceDriver driver) {
        try {
            DeviceInfo info = driver.info();
            List<GpuCell> cells = new GpuComparison(3, COPIED_BYTES, _ -> {}).bareCopies(driver);
            return String.format(
                    Locale.ROOT,
                    "%s, %s, compute %s, %.1f GiB in all, %.1f GiB free, kernels %s, %.1f GB/s to it, %.1f GB/s back",
                    info.name(),
                    info.driver(),
                    info.capability(),
                    info.totalBytes() / GIBIBYTE,
                    driver.freeBytes() / GIBIBYTE,
                    kernels(driver),
                    cells.get(0).bareGigabytes(),
                    cells.get(1).bareGigabytes());
        } catch (DeviceException failed) {
            return String.valueOf(failed.getMessage());
        }
    }

    private static String kernels(DeviceDriver driver) {
        try {
            Kernels.load(driver, 1).close();
            return "load";
        } catch (DeviceException refused) {
            return refused.error().name();
        }
    }
}
