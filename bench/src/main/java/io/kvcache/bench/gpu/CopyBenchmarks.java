package io.kvcache.bench.gpu;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.paging.PagedLayout;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/// The copies that are measured: blocks of 2 MiB in scattered slots, and pages of 32 KiB a layer and side.
final class CopyBenchmarks {

    private static final int BLOCK = 2 << 20;
    private static final int PIECE = 32 << 10;
    private static final int LAYERS = 32;
    private static final int BATCH_PIECES = 1024;

    private static final double MIN_BLOCKS_RATIO = 0.95;
    private static final double MIN_PAGES_RATIO = 0.85;

    private final GpuFixture stage;
    private final int blocks;
    private final List<Integer> order = new ArrayList<>();

    CopyBenchmarks(GpuFixture stage) {
        this.stage = stage;
        blocks = Math.toIntExact(stage.bytes / BLOCK);
        IntStream.range(0, blocks).forEach(order::add);
        Collections.shuffle(order, new Random(1));
    }

    List<CopyBenchmark> copies() {
        CopyBatch there = scattered(CopyBatch.toDevice(), stage.source, stage.first);
        CopyBatch home = scattered(CopyBatch.toHost(), stage.target, stage.second);
        List<CopyBatch> pagesIn = new ArrayList<>();
        List<CopyBatch> pagesOut = new ArrayList<>();
        pages(pagesIn, pagesOut);
        return List.of(
                new CopyBenchmark(
                        "onboard", stage.bytes, () -> stage.copy(there), stage::copyToDevice, MIN_BLOCKS_RATIO),
                new CopyBenchmark("offload", stage.bytes, () -> stage.copy(home), stage::copyToHost, MIN_BLOCKS_RATIO),
                new CopyBenchmark(
                        "both at once",
                        2 * stage.bytes,
                        () -> stage.copy(there, home),
                        stage::copyBothWays,
                        MIN_PAGES_RATIO),
                new CopyBenchmark(
                        "into pages", stage.bytes, () -> stage.copy(pagesIn), stage::copyToDevice, MIN_PAGES_RATIO),
                new CopyBenchmark(
                        "out of pages", stage.bytes, () -> stage.copy(pagesOut), stage::copyToHost, MIN_PAGES_RATIO));
    }

    private CopyBatch scattered(CopyBatch batch, MemorySegment host, DeviceSpan device) {
        for (int i = 0; i < blocks; i++) {
            MemorySegment slot = host.asSlice((long) order.get(i) * BLOCK, BLOCK);
            batch.add(slot, device.address().plus((long) i * BLOCK));
        }
        return batch;
    }

    /// As an engine has them: each layer by itself, pages of a sequence anywhere. Layer by layer, as they
    /// are wanted, and about a thousand pieces at a time: what is done for each piece before a call of the
    /// driver is done while the device is busy.
    private void pages(List<CopyBatch> in, List<CopyBatch> out) {
        long layerBytes = stage.bytes / LAYERS;
        List<DeviceSpan> into = new ArrayList<>();
        List<DeviceSpan> from = new ArrayList<>();
        for (int layer = 0; layer < LAYERS; layer++) {
            into.add(stage.first.slice(layer * layerBytes, layerBytes));
            from.add(stage.second.slice(layer * layerBytes, layerBytes));
        }
        PagedLayout inPages = PagedLayout.sideFirst(into, 2, blocks, PIECE, 1);
        PagedLayout outPages = PagedLayout.sideFirst(from, 2, blocks, PIECE, 1);
        for (int layer = 0; layer < LAYERS; layer++) {
            for (int i = 0; i < blocks; i++) {
                if (in.isEmpty() || in.getLast().pieces() >= BATCH_PIECES) {
                    in.add(CopyBatch.toDevice());
                    out.add(CopyBatch.toHost());
                }
                int[] page = {order.get(i)};
                inPages.addOnboard(stage.source.asSlice((long) i * BLOCK, BLOCK), page, layer, in.getLast());
                outPages.addOffload(page, stage.target.asSlice((long) i * BLOCK, BLOCK), layer, out.getLast());
            }
        }
    }

    /// One way to move bytes, and the bare copy that it is held against.
    ///
    /// @param bytes that each moves
    /// @param minRatio ratio that is asked for; 0 when none is
    record CopyBenchmark(String name, long bytes, Runnable copy, Runnable baseline, double minRatio) {}
}
