package io.kvcache.bench.cli;

import io.kvcache.bench.gpu.BenchDevice;
import io.kvcache.bench.gpu.GpuCell;
import io.kvcache.bench.gpu.GpuComparison;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceInfo;
import io.kvcache.gpu.kernel.Kernels;
import java.util.List;
import java.util.Locale;

/// What `kvcache doctor` says of the first GPU, in one line: what it is, what is free, whether it takes
/// our kernels, and how fast a copy is.
final class GpuProbe {

    private static final long COPIED_BYTES = 64L << 20;
    private static final double GIBIBYTE = 1L << 30;

    private GpuProbe() {}

    static String line() {
        BenchDevice device = BenchDevice.open(1);
        try (var driver = device.driver()) {
            if (!device.real()) {
                return device.why();
            }
            DeviceInfo info = driver.info();
            List<GpuCell> cells = new GpuComparison(3, COPIED_BYTES, _ -> {}).run(driver);
            return String.format(
                    Locale.ROOT,
                    "%s, %s, compute %s, %.1f GiB in all, %.1f GiB free, kernels %s, %.1f GB/s to it, %.1f GB/s back",
                    info.name(),
                    info.driver(),
                    info.capability(),
                    info.totalBytes() / GIBIBYTE,
                    driver.freeBytes() / GIBIBYTE,
                    kernels(device),
                    cells.get(0).bareGigabytes(),
                    cells.get(1).bareGigabytes());
        } catch (DeviceException failed) {
            return String.valueOf(failed.getMessage());
        }
    }

    private static String kernels(BenchDevice device) {
        try {
            Kernels.load(device.driver(), 1).close();
            return "load";
        } catch (DeviceException refused) {
            return refused.error().name();
        }
    }
}
