package io.kvcache.bench.lab;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.ModelPreset;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/// The computing power and the bandwidths of an engine.
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

    /// Share of the peak that a prefill reaches.
    private static final double UTILIZATION = 0.5;

    /// One NVMe drive of PCIe 5.
    private static final double NVME_BYTES = 13e9;

    private static final double NVME_LATENCY = 100e-6;

    /// So many H100 that compute together at half their peak, each with its own way to host memory, and
    /// one drive.
    public static EngineHardware h100(ModelPreset model, int count) {
        return of(GpuPreset.H100, model, count);
    }

    /// So many GPUs that compute together at half their peak, each with its own way to host memory, and
    /// one drive.
    public static EngineHardware of(GpuPreset gpu, ModelPreset model, int count) {
        return new EngineHardware(
                PrefillCost.of(model, count * UTILIZATION * gpu.flops()),
                model.kvBytesPerToken(),
                count * gpu.hostBytesPerSecond(),
                NVME_BYTES,
                NVME_LATENCY);
    }

    /// Well-known GPUs, by their makers' data sheets. The bandwidth to host memory is measured.
    public enum GpuPreset {
        /// 80 GB, PCIe 4.
        A100(80e9, 312e12, 25e9),
        /// 80 GB, PCIe 5.
        H100(80e9, 989e12, 55e9),
        /// 141 GB, PCIe 5.
        H200(141e9, 989e12, 55e9);

        /// The share of a device's memory that engines use by default, as vLLM does.
        private static final double USABLE_SHARE = 0.9;

        private final double memoryBytes;
        private final double flops;
        private final double hostBytesPerSecond;

        /// @param flops dense peak in BF16, a second
        GpuPreset(double memoryBytes, double flops, double hostBytesPerSecond) {
            this.memoryBytes = memoryBytes;
            this.flops = flops;
            this.hostBytesPerSecond = hostBytesPerSecond;
        }

        /// The preset of a name such as `h100`, in any case.
        public static Optional<GpuPreset> named(String name) {
            return Arrays.stream(values())
                    .filter(preset -> preset.label().equalsIgnoreCase(name))
                    .findFirst();
        }

        /// All names, for messages.
        public static String names() {
            return Arrays.stream(values()).map(GpuPreset::label).collect(Collectors.joining(", "));
        }

        /// The name as users write it: `h100`.
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }

        /// Memory that so many of them have for KV once the weights are there; below 0 when these do not fit.
        public long kvBytes(ModelPreset model, int count) {
            return (long) (USABLE_SHARE * memoryBytes * count - weightBytes(model));
        }

        double flops() {
            return flops;
        }

        double hostBytesPerSecond() {
            return hostBytesPerSecond;
        }

        /// Weights as they are published: two bytes a parameter, DeepSeek-V3's 671 billion in one each.
        static double weightBytes(ModelPreset model) {
            return switch (model) {
                case LLAMA_3_8B, LLAMA_3_70B, QWEN3_32B -> 2 * model.activeParameters();
                case DEEPSEEK_V3 -> 671e9;
            };
        }
    }
}
