package io.kvcache.bench.gpu;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.CopyBatch.CopyDirection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.planner.Median;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// How many bytes a second get to a device, back, and from one place of it to another, in pieces of 4
/// KiB to 2 MiB: each by a call of its own, many in one call, the same bytes without gaps (one run),
/// and within the device by a kernel?
///
/// @param rounds how often each is measured, after one round that is not counted; medians are told
/// @param bytes of memory on either side, of whole blocks of 4 MiB; half of them move, for the gaps
public record GpuBandwidth(int rounds, long bytes, Consumer<String> progress) {

    /// The smallest piece; each further size is twice as large.
    public static final int MIN_PIECE_BYTES = 4 << 10;

    /// The largest.
    public static final int MAX_PIECE_BYTES = 2 << 20;

    /// More take no other time each.
    private static final int MAX_PIECES = 4096;

    private static final int BATCH_PIECES = 1024;

    /// How pieces get there.
    public enum CopyMethod {
        /// A call for each.
        LOOP,
        /// About a thousand a call, none beside another.
        BATCH,
        /// All beside each other, and so one run.
        COALESCED,
        /// By threads of the device, from lists of places.
        KERNEL
    }

    /// A figure.
    ///
    /// @param gigabytes a second, 10^9 bytes
    /// @param registered whether the driver let host memory be registered
    public record BandwidthResult(
            CopyDirection direction, CopyMethod way, int pieceBytes, double gigabytes, boolean registered) {}

    /// Measures, and gives all that it took of the device back. Without figures for kernels where it
    /// runs no code.
    ///
    /// @param each told of every figure as soon as it is there; those of a direction and way by
    ///     growing sizes
    public void run(DeviceDriver driver, Consumer<BandwidthResult> each) {
        try (GpuFixture stage = new GpuFixture(driver, bytes)) {
            for (CopyDirection direction : CopyDirection.values()) {
                progress.accept(direction.toString());
                for (CopyMethod copyMethod : CopyMethod.values()) {
                    for (int size = MIN_PIECE_BYTES;
                            copyMethod != CopyMethod.KERNEL && size <= MAX_PIECE_BYTES;
                            size *= 2) {
                        double found = copies(stage, direction, copyMethod, size);
                        each.accept(new BandwidthResult(direction, copyMethod, size, found, stage.isPinned()));
                    }
                }
            }
            KernelBenchmarks kernels = KernelBenchmarks.load(stage, progress);
            if (kernels != null) {
                try (kernels) {
                    for (int size = MIN_PIECE_BYTES; size <= MAX_PIECE_BYTES; size *= 2) {
                        double found = gigabytes(kernels.copyWorkload(size, pieces(size)), size);
                        each.accept(new BandwidthResult(
                                CopyDirection.WITHIN, CopyMethod.KERNEL, size, found, stage.isPinned()));
                    }
                }
            }
        }
    }

    private int pieces(int size) {
        return (int) Math.min(MAX_PIECES, bytes / 2 / size);
    }

    private double copies(GpuFixture stage, CopyDirection direction, CopyMethod copyMethod, int size) {
        int stride = copyMethod == CopyMethod.COALESCED ? size : 2 * size;
        int atATime = copyMethod == CopyMethod.LOOP ? 1 : copyMethod == CopyMethod.BATCH ? BATCH_PIECES : MAX_PIECES;
        List<CopyBatch> batches = new ArrayList<>();
        for (int i = 0; i < pieces(size); i++) {
            if (i % atATime == 0) {
                batches.add(batch(direction));
            }
            add(batches.getLast(), direction, stage, (long) i * stride, size);
        }
        return gigabytes(() -> stage.copy(batches), size);
    }

    private static CopyBatch batch(CopyDirection direction) {
        return switch (direction) {
            case TO_DEVICE -> CopyBatch.toDevice();
            case TO_HOST -> CopyBatch.toHost();
            case WITHIN -> CopyBatch.within();
        };
    }

    private static void add(CopyBatch batch, CopyDirection direction, GpuFixture stage, long at, int size) {
        DeviceSpan first = stage.first.slice(at, size);
        DeviceSpan second = stage.second.slice(at, size);
        switch (direction) {
            case TO_DEVICE -> batch.add(stage.source.asSlice(at, size), first.address());
            case TO_HOST -> batch.add(stage.target.asSlice(at, size), second.address());
            case WITHIN -> batch.add(first.address(), second.address(), size);
        }
    }

    private double gigabytes(Runnable copy, int size) {
        double[] found = new double[rounds];
        for (int round = -1; round < rounds; round++) {
            long since = System.nanoTime();
            copy.run();
            double each = (double) size * pieces(size) / (System.nanoTime() - since);
            if (round >= 0) {
                found[round] = each;
            }
        }
        return Median.of(found);
    }
}
