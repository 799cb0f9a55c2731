package io.kvcache.gpu.paging;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Moves blocks between pages of engines' pools and blocks in the same device's memory: by the copy engine when
/// pieces are large or few, by a kernel when they are small and many.
///
/// **Threads.** The driver's.
///
/// **Errors.** [IllegalArgumentException] for pages or blocks that do not fit the pool, before anything is
/// begun.
public final class PageCopier implements AutoCloseable {

    /// Groups of threads for small pieces: engines want their processors for themselves.
    private static final int THREAD_GROUPS = 32;

    /// A list of 64 KiB.
    private static final int MAX_PIECES = 4096;

    private static final int UNIT_BYTES = 16;

    private final CopyThreshold threshold;
    private final @Nullable GpuKernels kernels;
    private final @Nullable CopyList pieces;

    /// A block on the device, and the pages that it comes from or goes to.
    ///
    /// @param bytes of [PagedLayout#blockBytes]
    @SuppressWarnings("ArrayRecordComponent") // as engines have them
    public record DeviceBlock(DeviceSpan bytes, int[] pages) {}

    private PageCopier(CopyThreshold threshold, @Nullable GpuKernels kernels, @Nullable CopyList pieces) {
        this.threshold = threshold;
        this.kernels = kernels;
        this.pieces = pieces;
    }

    /// With a threshold that is measured now; a device that runs no code copies everything.
    public static PageCopier calibrated(DeviceDriver driver) {
        return open(driver, kernels -> CopyThreshold.measure(driver, kernels, System::nanoTime));
    }

    /// With a threshold that is known. One that copies everything takes nothing of the device.
    public static PageCopier open(DeviceDriver driver, CopyThreshold threshold) {
        return threshold.equals(CopyThreshold.ALWAYS_COPY)
                ? new PageCopier(threshold, null, null)
                : open(driver, _ -> threshold);
    }

    private static PageCopier open(DeviceDriver driver, Function<GpuKernels, CopyThreshold> thresholds) {
        GpuKernels kernels;
        try {
            kernels = GpuKernels.load(driver, THREAD_GROUPS);
        } catch (DeviceException refused) {
            if (refused.error() != DeviceError.NOT_SUPPORTED) {
                throw refused;
            }
            return new PageCopier(CopyThreshold.ALWAYS_COPY, null, null);
        }
        try {
            return of(driver, kernels, thresholds.apply(kernels));
        } catch (DeviceException refused) {
            kernels.close();
            throw refused;
        }
    }

    /// @param kernels this one's from here on
    static PageCopier of(DeviceDriver driver, GpuKernels kernels, CopyThreshold threshold) {
        return new PageCopier(threshold, kernels, new CopyList(driver, kernels, MAX_PIECES, CopyList.MAX_WAIT_NANOS));
    }

    /// From where on pieces are copied.
    public CopyThreshold threshold() {
        return threshold;
    }

    /// Brings pages together in blocks.
    public void gather(DeviceStream stream, PagedLayout layout, List<DeviceBlock> blocks) {
        move(stream, layout, blocks, true);
    }

    /// Brings blocks into pages; no page gets two.
    public void scatter(DeviceStream stream, PagedLayout layout, List<DeviceBlock> blocks) {
        move(stream, layout, blocks, false);
    }

    private void move(DeviceStream stream, PagedLayout layout, List<DeviceBlock> blocks, boolean together) {
        CopyBatch batch = CopyBatch.within();
        for (DeviceBlock block : blocks) {
            for (int layer = 0; layer < layout.layers().size(); layer++) {
                if (together) {
                    layout.addGather(block.pages, block.bytes, layer, batch);
                } else {
                    layout.addScatter(block.bytes, block.pages, layer, batch);
                }
            }
        }
        CopyList list = pieces;
        if (list == null
                || threshold.usesCopyEngine(layout.pieceBytes(), batch.pieces())
                || !isAligned(layout, blocks)) {
            stream.copy(batch);
            return;
        }
        batch.requireNoOverlap();
        list.clear();
        for (DeviceBlock block : blocks) {
            addPieces(stream, layout, list, block, together);
        }
        run(stream, layout, list);
    }

    private static void addPieces(
            DeviceStream stream, PagedLayout layout, CopyList list, DeviceBlock block, boolean together) {
        for (int layer = 0; layer < layout.layers().size(); layer++) {
            for (int side = 0; side < layout.sides(); side++) {
                for (int ordinal = 0; ordinal < block.pages.length; ordinal++) {
                    if (list.isFull()) {
                        run(stream, layout, list);
                        list.clear();
                    }
                    DeviceAddress page = layout.pieceAddress(layer, side, block.pages[ordinal]);
                    DeviceAddress place = block.bytes.address().plus(layout.offsetInBlock(layer, side, ordinal));
                    list.add(together ? page : place, together ? place : page);
                }
            }
        }
    }

    private static void run(DeviceStream stream, PagedLayout layout, CopyList list) {
        if (list.count() > 0) {
            list.copy(stream, (int) layout.pieceBytes());
        }
    }

    /// Kernels move 16 bytes at a time, from and to multiples of 16.
    private static boolean isAligned(PagedLayout layout, List<DeviceBlock> blocks) {
        return layout.isAlignedTo(UNIT_BYTES)
                && blocks.stream().allMatch(block -> block.bytes.address().value() % UNIT_BYTES == 0);
    }

    /// {@inheritDoc}
    ///
    /// @throws DeviceException when the device cannot say whether it has done; all that it may not
    ///     still read is given back then
    @Override
    public void close() {
        try {
            if (pieces != null) {
                pieces.close();
            }
        } finally {
            if (kernels != null) {
                kernels.close();
            }
        }
    }
}
