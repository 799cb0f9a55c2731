package io.kvcache.bench.gpu;

import io.kvcache.gpu.cuda.CudaDriver;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.host.HostDriver;

/// The first GPU, or a device in plain Java where there is none.
///
/// @param driver to be closed by whoever opened this
/// @param why there is no GPU; empty when there is one
public record BenchDevice(DeviceDriver driver, String why) {

    /// Opens it.
    ///
    /// @param pretendedBytes memory of the device where there is no GPU
    public static BenchDevice open(long pretendedBytes) {
        try {
            return new BenchDevice(CudaDriver.open(0), "");
        } catch (DeviceException none) {
            return new BenchDevice(HostDriver.open(pretendedBytes), String.valueOf(none.getMessage()));
        }
    }

    /// Whether it is a GPU.
    public boolean real() {
        return why.isEmpty();
    }
}
