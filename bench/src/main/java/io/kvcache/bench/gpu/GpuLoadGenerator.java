package io.kvcache.bench.gpu;

import io.kvcache.gpu.driver.DeviceDriver;

/// Keeps a device at work, for what is measured beside it: turns as many values as fit into its
/// caches many times over, again and again, by enough threads for all of a GPU. That takes its
/// memory's whole width and little of its arithmetic, unlike an engine's products of matrices.
public final class GpuLoadGenerator {

    private static final long GPU_BYTES = 256L << 20;
    private static final long OTHER_BYTES = 2L << 20;
    private static final int BATCH_LAUNCHES = 8;

    private GpuLoadGenerator() {}

    /// Works until it is over.
    ///
    /// @param begun called when the device has done the first round
    public static void run(BenchDevice device, long nanos, Runnable begun) {
        long since = System.nanoTime();
        try (DeviceDriver driver = device.driver();
                GpuFixture stage = new GpuFixture(driver, device.isGpu() ? GPU_BYTES : OTHER_BYTES)) {
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
