package io.kvcache.bench.lab;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.ModelPreset;

/// What an engine computes and moves with.
///
/// @param prefill of the whole engine
/// @param bytesPerToken of KV, in all layers
/// @param hostBytesPerSecond from host memory to the devices
/// @param diskBytesPerSecond from disk to host memory
/// @param diskLatencySeconds of the first byte
public record EngineHardware(
        PrefillCost prefill,
        long bytesPerToken,
        double hostBytesPerSecond,
        double diskBytesPerSecond,
        double diskLatencySeconds) {

    /// Half of 989 TFLOPS, an H100's dense peak in BF16.
    private static final double H100_FLOPS = 0.5 * 989e12;

    /// PCIe 5 with 16 lanes, as it is measured, for each device; one NVMe drive of that generation, 13
    /// GB/s, for all.
    private static final double PCIE_BYTES = 55e9;

    private static final double NVME_BYTES = 13e9;
    private static final double NVME_LATENCY = 100e-6;

    /// So many H100 that compute together at half their peak, each with its own way to host memory, and
    /// one drive.
    public static EngineHardware h100(ModelPreset model, int count) {
        return new EngineHardware(
                PrefillCost.of(model, count * H100_FLOPS),
                model.kvBytesPerToken(),
                count * PCIE_BYTES,
                NVME_BYTES,
                NVME_LATENCY);
    }
}
