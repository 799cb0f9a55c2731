package io.kvcache.bench.gpu;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.CopyBatch.CopyDirection;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.paging.HostPageCopier;
import io.kvcache.gpu.paging.PageCopier.DeviceBlock;
import io.kvcache.gpu.paging.PagedLayout;
import io.kvcache.gpu.paging.PieceList;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/// The copies that are measured: blocks of 2 MiB in scattered slots, and blocks of an engine's scattered pages.
final class CopyBenchmarks {

    private static final int BLOCK = 2 << 20;

    /// Of a layer and side: a page of 16 tokens has 32 KiB with 8 heads of 128 values, 8 KiB with 2 of them.
    private static final int PIECE = 32 << 10;

    private static final int SMALL_PIECE = 8 << 10;
    private static final int LAYERS = 32;
    private static final int SIDES = 2;

    /// Requests of an engine that are in flight at a time, so that each has a list of pieces.
    private static final int REQUESTS = 4;

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
        return List.of(
                new CopyBenchmark("onboard", stage.bytes, () -> stage.copy(there), stage::copyToDevice),
                new CopyBenchmark("offload", stage.bytes, () -> stage.copy(home), stage::copyToHost),
                new CopyBenchmark("both at once", 2 * stage.bytes, () -> stage.copy(there, home), stage::copyBothWays),
                intoPages("into pages", PIECE),
                outOfPages("out of pages", PIECE),
                intoPages("into small pages", SMALL_PIECE),
                outOfPages("out of small pages", SMALL_PIECE),
                withinDevice("device to pages", PIECE, false),
                withinDevice("pages to device", PIECE, true),
                withinDevice("device to small pages", SMALL_PIECE, false),
                withinDevice("small pages to device", SMALL_PIECE, true));
    }

    /// As a load of blocks that are on the engine's own device, and a store of blocks that are to be there: by a
    /// kernel or by copies, whichever was measured to be better.
    private CopyBenchmark withinDevice(String name, int pieceBytes, boolean out) {
        int perBlock = PIECE / pieceBytes;
        PagedLayout layout = layout(stage.first, pieceBytes);
        List<DeviceBlock> moved = order.stream()
                .map(block ->
                        new DeviceBlock(stage.second.slice((long) block * BLOCK, BLOCK), pagesOf(block, perBlock)))
                .toList();
        return new CopyBenchmark(
                name, stage.bytes, () -> stage.moveWithinDevice(layout, moved, out), stage::copyWithinDevice);
    }

    private PagedLayout layout(DeviceSpan device, int pieceBytes) {
        int perBlock = PIECE / pieceBytes;
        return PagedLayout.sideFirst(layers(device), SIDES, blocks * perBlock, pieceBytes, perBlock);
    }

    private CopyBenchmark intoPages(String name, int pieceBytes) {
        return new CopyBenchmark(
                name, stage.bytes, () -> move(stage.source, stage.first, pieceBytes, false), stage::copyToDevice);
    }

    private CopyBenchmark outOfPages(String name, int pieceBytes) {
        return new CopyBenchmark(
                name, stage.bytes, () -> move(stage.target, stage.second, pieceBytes, true), stage::copyToHost);
    }

    /// As [io.kvcache.gpu.engine.EngineIpcServer] does it: by a kernel or by copies, whichever was measured to be
    /// better.
    private void move(MemorySegment host, DeviceSpan device, int pieceBytes, boolean out) {
        int perBlock = PIECE / pieceBytes;
        PagedLayout layout = layout(device, pieceBytes);
        List<PieceList> lists = new ArrayList<>();
        int each = Math.ceilDiv(blocks, REQUESTS);
        for (int first = 0; first < blocks; first += each) {
            List<MemorySegment> hostBlocks = new ArrayList<>();
            List<int[]> pages = new ArrayList<>();
            for (int i = first; i < Math.min(first + each, blocks); i++) {
                hostBlocks.add(host.asSlice((long) i * BLOCK, BLOCK));
                pages.add(pagesOf(order.get(i), perBlock));
            }
            PieceList list = stage.acquireList(layout, hostBlocks, pages);
            if (list == null) {
                HostPageCopier.copy(
                        stage.stream(),
                        layout,
                        hostBlocks,
                        pages,
                        out ? CopyDirection.TO_HOST : CopyDirection.TO_DEVICE);
            } else if (out) {
                list.store(stage.stream(), layout, hostBlocks, pages, null);
            } else {
                list.load(stage.stream(), layout, hostBlocks, pages, null);
            }
            if (list != null) {
                lists.add(list);
            }
        }
        stage.awaitIdle();
        lists.forEach(PieceList::release);
    }

    /// None beside another: pages of all blocks take turns.
    private int[] pagesOf(int block, int perBlock) {
        return IntStream.range(0, perBlock).map(i -> i * blocks + block).toArray();
    }

    private List<DeviceSpan> layers(DeviceSpan device) {
        long layerBytes = stage.bytes / LAYERS;
        return IntStream.range(0, LAYERS)
                .mapToObj(layer -> device.slice(layer * layerBytes, layerBytes))
                .toList();
    }

    private CopyBatch scattered(CopyBatch batch, MemorySegment host, DeviceSpan device) {
        for (int i = 0; i < blocks; i++) {
            MemorySegment slot = host.asSlice((long) order.get(i) * BLOCK, BLOCK);
            batch.add(slot, device.address().plus((long) i * BLOCK));
        }
        return batch;
    }

    /// One way to move bytes, and the bare copy that it is held against.
    ///
    /// @param bytes that each moves
    record CopyBenchmark(String name, long bytes, Runnable copy, Runnable baseline) {}
}
