package io.kvcache.bench.gpu;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.gpu.CopyBenchmarks.CopyBenchmark;
import io.kvcache.gpu.driver.DeviceDriver;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// How fast are blocks, pages and kernels on a device, beside bare copies of as many bytes in the same
/// round?
///
/// Each way and its bare copy take turns, so that a device that gets slower does so for both.
///
/// @param rounds how often each is measured, after as many that are not counted: a JVM compiles what it runs often
/// @param bytes that each moves, of whole blocks of 2 MiB
public record GpuComparison(int rounds, long bytes, Consumer<String> progress) {

    /// Measures, and gives all that it took of the device back.
    ///
    /// @param each told of every way as soon as it is measured, so that nothing is lost when one after it fails
    public List<GpuCopyResult> run(DeviceDriver driver, Consumer<GpuCopyResult> each) {
        try (GpuFixture stage = new GpuFixture(driver, bytes)) {
            CopyBenchmarks ways = new CopyBenchmarks(stage);
            List<GpuCopyResult> cells = new ArrayList<>();
            for (CopyBenchmark way : ways.copies()) {
                cells.add(measure(stage, way, way.bytes(), each));
            }
            KernelBenchmarks kernels = KernelBenchmarks.load(stage, progress);
            if (kernels != null) {
                try (kernels) {
                    for (CopyBenchmark way : kernels.benchmarks()) {
                        cells.add(measure(stage, way, 2 * bytes, each));
                    }
                }
            }
            return cells;
        }
    }

    private GpuCopyResult measure(GpuFixture stage, CopyBenchmark way, long bareBytes, Consumer<GpuCopyResult> each) {
        progress.accept(way.name());
        double[] ours = new double[rounds];
        double[] bare = new double[rounds];
        for (int round = -rounds; round < rounds; round++) {
            double other = gigabytes(way.baseline(), bareBytes);
            double own = gigabytes(way.copy(), way.bytes());
            if (round >= 0) {
                ours[round] = own;
                bare[round] = other;
            }
        }
        GpuCopyResult cell =
                new GpuCopyResult(Figure.of(way.name(), "GB/s", ours, "bare copy", bare), stage.isPinned());
        each.accept(cell);
        return cell;
    }

    private static double gigabytes(Runnable copy, long moved) {
        long since = System.nanoTime();
        copy.run();
        return (double) moved / (System.nanoTime() - since);
    }

    /// The result of one way to move bytes.
    ///
    /// @param figure GB/s, beside a bare copy of the same bytes in the same rounds
    /// @param registered whether the driver let host memory be registered
    public record GpuCopyResult(Figure figure, boolean registered) {}
}
