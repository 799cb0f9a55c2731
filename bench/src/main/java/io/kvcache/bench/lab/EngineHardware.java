package io.kvcache.bench.lab;

import io.kvcache.bench.model.GpuProfile;
import io.kvcache.bench.model.ModelProfile;
import io.kvcache.core.cost.PrefillCost;

/// The computing power and the bandwidths of an engine.
///
/// @param prefill of the whole engine
/// @param bytesPerToken of KV, in all layers that keep all tokens
/// @param hostBytesPerSecond from host memory to the devices
/// @param diskBytesPerSecond from disk to host memory
/// @param diskLatencySeconds of the first byte
public record EngineHardware(
        PrefillCost prefill,
        long bytesPerToken,
        double hostBytesPerSecond,
        double diskBytesPerSecond,
        double diskLatencySeconds) {

    /// Share of the peak that a prefill reaches.
    private static final double UTILIZATION = 0.5;

    /// One NVMe drive of PCIe 5.
    private static final double NVME_BYTES = 13e9;

    private static final double NVME_LATENCY = 100e-6;

    /// So many GPUs that compute together at half their peak, each with its own way to host memory, and
    /// one drive.
    public static EngineHardware of(GpuProfile gpu, ModelProfile model, int count) {
        return new EngineHardware(
                model.prefillCost(count * UTILIZATION * gpu.flops()),
                model.kvBytesPerToken(),
                count * gpu.hostBytesPerSecond(),
                NVME_BYTES,
                NVME_LATENCY);
    }
}
