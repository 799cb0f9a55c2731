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
}
