package io.kvcache.bench.gpu;

import io.kvcache.gpu.cuda.CudaDriver;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.host.FakeDeviceDriver;

/// The first GPU, or a device in plain Java on a machine without one.
///
/// @param driver the caller of [#open] closes it
/// @param reason why the device is not a GPU; empty when it is one
public record BenchDevice(DeviceDriver driver, Kind kind, String reason) {

    /// Device name of the stand-in for NVIDIA's driver that the tests build.
    private static final String STAND_IN = "CPU stand-in";

    /// The kind of device.
    public enum Kind {
        /// A device of NVIDIA's.
        GPU,
        /// A CPU behind NVIDIA's calls, kernels included: much slower than either of the others.
        STAND_IN,
        /// Host memory, and no code of a device.
        FAKE
    }

    /// Opens the first GPU, or the device in plain Java.
    ///
    /// @param pretendedBytes memory of the device in plain Java, used when the driver cannot be opened
    public static BenchDevice open(long pretendedBytes) {
        try {
            DeviceDriver driver = CudaDriver.open(0);
            if (name(driver).equals(STAND_IN)) {
                return new BenchDevice(driver, Kind.STAND_IN, "a CPU stands in for it, behind NVIDIA's calls");
            }
            return new BenchDevice(driver, Kind.GPU, "");
        } catch (DeviceException none) {
            return new BenchDevice(FakeDeviceDriver.open(pretendedBytes), Kind.FAKE, String.valueOf(none.getMessage()));
        }
    }

    private static String name(DeviceDriver driver) {
        try {
            return driver.info().name();
        } catch (DeviceException refused) {
            driver.close();
            throw refused;
        }
    }

    /// Returns whether it is a GPU.
    public boolean isGpu() {
        return kind == Kind.GPU;
    }

    private static final long BUSY_GPU_BYTES = 256L << 20;
    private static final long BUSY_OTHER_BYTES = 2L << 20;
    private static final int BATCH_LAUNCHES = 8;

    /// Keeps the device at work, for what is measured beside it, and closes it: turns as many values as fit
    /// into its caches many times over, by enough threads for all of a GPU. That takes its memory's whole
    /// width and little of its arithmetic, unlike an engine's products of matrices.
    ///
    /// @param begun called when the device has done the first round
    public void keepBusy(long nanos, Runnable begun) {
        long since = System.nanoTime();
        try (driver;
                GpuFixture stage = new GpuFixture(driver, isGpu() ? BUSY_GPU_BYTES : BUSY_OTHER_BYTES)) {
            KernelBenchmarks kernels = KernelBenchmarks.load(stage, System.err::println);
            if (kernels == null) {
                work(stage::copyWithinDevice, since, nanos, begun);
                return;
            }
            try (kernels) {
                work(kernels.ropeWorkload(BATCH_LAUNCHES), since, nanos, begun);
            }
        }
    }

    private static void work(Runnable round, long since, long nanos, Runnable begun) {
        round.run();
        begun.run();
        while (System.nanoTime() - since < nanos) {
            round.run();
        }
    }
}
