package io.kvcache.bench.gpu;

import io.kvcache.gpu.driver.DeviceDriver;

/// Keeps a device at work, for what is measured beside it: turns as many values as fit into its
/// caches many times over, again and again, by enough threads for all of a GPU. That takes its
/// memory's whole width and little of its arithmetic, unlike an engine's products of matrices.
public final class GpuBusy {

    private static final long GPU_BYTES = 256L << 20;
    private static final long OTHER_BYTES = 2L << 20;
    private static final int LAUNCHES_AT_A_TIME = 8;

    private GpuBusy() {}

    /// Works until it is over.
    ///
    /// @param begun called when the device has done the first round
    public static void run(BenchDevice device, long nanos, Runnable begun) {
        long since = System.nanoTime();
        try (DeviceDriver driver = device.driver();
                GpuStage stage = new GpuStage(driver, device.real() ? GPU_BYTES : OTHER_BYTES)) {
            GpuKernelWays kernels = GpuKernelWays.load(stage, System.err::println);
            if (kernels == null) {
                work(stage::bareWithin, since, nanos, begun);
                return;
            }
            try (kernels) {
                work(kernels.turning(LAUNCHES_AT_A_TIME), since, nanos, begun);
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
