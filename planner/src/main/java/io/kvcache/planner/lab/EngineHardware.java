package io.kvcache.planner.lab;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.planner.model.GpuProfile;
import io.kvcache.planner.model.ModelProfile;

/// The computing power and the bandwidths of an engine.
///
/// @param prefill of the whole engine
/// @param bytesPerToken of KV, in all layers that keep all tokens
/// @param hostBytesPerSecond from host memory to the devices
/// @param diskBytesPerSecond from disk to host memory
/// @param diskLatencySeconds of the first byte
/// @param requestTimes what a request takes beside its prefill
public record EngineHardware(
        PrefillCost prefill,
        long bytesPerToken,
        double hostBytesPerSecond,
        double diskBytesPerSecond,
        double diskLatencySeconds,
        RequestTimes requestTimes) {

    /// Share of the peak that a prefill reaches.
    private static final double UTILIZATION = 0.5;

    /// One NVMe drive of PCIe 5.
    public static final double NVME_BYTES_PER_SECOND = 13e9;

    /// Of the same drive.
    public static final double NVME_LATENCY_SECONDS = 100e-6;

    /// What a request takes beside its prefill.
    ///
    /// @param secondsPerRequest before its first token, whatever its length
    /// @param secondsPerOutputToken after it, while the engine does nothing else; 0 where it batches
    public record RequestTimes(double secondsPerRequest, double secondsPerOutputToken) {

        /// Nothing.
        public static final RequestTimes NONE = new RequestTimes(0, 0);
    }

    /// So many GPUs that compute together at half their peak, each with its own way to host memory, and
    /// one drive.
    public static EngineHardware of(GpuProfile gpu, ModelProfile model, int count) {
        return new EngineHardware(
                model.prefillCost(count * UTILIZATION * gpu.flops()),
                model.kvBytesPerToken(),
                count * gpu.hostBytesPerSecond(),
                NVME_BYTES_PER_SECOND,
                NVME_LATENCY_SECONDS,
                RequestTimes.NONE);
    }
}
