package io.kvcache.gpu.sequence;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.tier.DevicePages;
import io.kvcache.gpu.tier.DevicePages.Page;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// Blocks of host memory that are copied to pages, some layers at a time, as a disk brings them there. Others find
/// the pages when all layers are copied.
///
/// **Threads.** As of [PagedKvCache].
final class LayeredLoad {

    private final PagedKvCache owner;
    private final DevicePages pages;
    private final BlockChain chain;
    private final BlockTable table;
    private final List<LoadedBlock> blocks;
    private final int layers;
    private final long layerBytes;
    private int firstLost;
    private int copiedLayers;
    private boolean closed;

    /// @param index of the chain
    /// @param page held by this
    record LoadedBlock(int index, Page page) {}

    /// @param table this one's; it has the blocks, or expects them
    /// @param layers of a block
    LayeredLoad(PagedKvCache owner, BlockChain chain, BlockTable table, List<LoadedBlock> blocks, int layers) {
        this.owner = owner;
        this.chain = chain;
        this.table = table;
        this.blocks = new ArrayList<>(blocks);
        this.layers = layers;
        firstLost = chain.length();
        pages = owner.pages();
        layerBytes = owner.pageBytes() / layers;
    }

    /// Waits until the first layers of all blocks are there, and has the stream wait for their copies.
    ///
    /// @param wanted layers from the first on; of more than there are, all
    /// @return whether they are in time
    /// @throws DeviceException when the device refuses; this is abandoned then
    boolean await(int wanted, Duration timeout) {
        int to = Math.min(wanted, layers);
        if (to <= copiedLayers) {
            return true;
        }
        boolean isReady = blocks.isEmpty() || blocks.getLast().index < table.readyEnd();
        if (!isReady && table.awaitLayers(to, timeout) < to) {
            return false;
        }
        blocks.removeIf(block -> !comes(block, to));
        try {
            copy(to);
        } catch (DeviceException refused) {
            closed = true;
            throw owner.abandon(refused, this::giveBack);
        }
        return true;
    }

    private boolean comes(LoadedBlock block, int to) {
        boolean comes = block.index < table.endBlock()
                && table.readySegment(block.index).byteSize() >= to * layerBytes;
        if (!comes) {
            firstLost = Math.min(firstLost, block.index);
            pages.release(block.page);
        }
        return comes;
    }

    private void copy(int to) {
        long from = copiedLayers * layerBytes;
        long bytes = to * layerBytes - from;
        CopyBatch batch = CopyBatch.toDevice();
        for (LoadedBlock block : blocks) {
            MemorySegment source = table.readySegment(block.index).asSlice(from, bytes);
            batch.add(source, block.page.span().address().plus(from));
        }
        boolean isLast = to == layers;
        if (!blocks.isEmpty()) {
            owner.copyToPages(batch, isLast ? this::onCopied : () -> {});
        }
        copiedLayers = to;
        if (isLast) {
            closed = true;
            // Who shares them reads them behind the copy, on the same stream.
            blocks.forEach(block -> PagedKvCache.seal(pages, block.page, chain, block.index));
            if (blocks.isEmpty()) {
                table.close();
            }
        }
    }

    private void onCopied() {
        blocks.forEach(block -> pages.setChecksum(block.page, table.checksum(block.index)));
        giveBack();
    }

    private void giveBack() {
        table.close();
        blocks.forEach(block -> pages.release(block.page));
    }

    /// Returns the first block that does not come; the end of the chain when all do.
    int firstLost() {
        return firstLost;
    }

    /// Returns whether all layers are copied, or it was given up.
    boolean isDone() {
        return closed;
    }

    /// Gives up what is not copied.
    void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            owner.onStream(this::giveBack);
        } catch (DeviceException refused) {
            DeviceException _ = owner.abandon(refused, this::giveBack);
        }
    }
}
