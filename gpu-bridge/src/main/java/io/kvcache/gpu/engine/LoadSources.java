package io.kvcache.gpu.engine;

import io.kvcache.core.BlockTable;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.paging.PageCopier.DeviceBlock;
import io.kvcache.gpu.paging.PagedLayout;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockMap;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Where the blocks of a load come from, each from the fastest place: out of the memory of the engine's own device,
/// else out of host memory, where a disk may have to bring it first.
///
/// A block that is on the device moves no byte over the bus, also when host memory has it too. Where the rest is in
/// host memory no disk is asked. Otherwise host memory gets all that a disk has up to the end of the load, as a
/// resident block has a resident parent; what lies on the device is still taken from there.
///
/// **Threads.** The session's.
final class LoadSources implements AutoCloseable {

    private final BlockChain chain;
    private final int first;
    private final DeviceBlockMap device;
    private final BlockTable table;

    /// What is copied with one layout: blocks of host memory and of the device, and the pages of each.
    ///
    /// @param pages of each block of host memory
    /// @param deviceMemory in which the blocks of the device lie
    record Pieces(
            List<MemorySegment> blocks, List<int[]> pages, List<DeviceBlock> onDevice, Set<DeviceSpan> deviceMemory) {

        int count() {
            return blocks.size() + onDevice.size();
        }
    }

    /// @param device of the section
    /// @param table from `first` on
    LoadSources(BlockChain chain, int first, DeviceBlockMap device, BlockTable table) {
        this.chain = chain;
        this.first = first;
        this.device = device;
        this.table = table;
    }

    /// Asks host memory and disks.
    interface TableMaker {

        BlockTable acquire(BlockChain chain, int from, Duration timeout);
    }

    /// Pins the blocks from one on to the end of a chain.
    ///
    /// @param tier in the memory of the engine's device, or null when there is none
    /// @param acquire how blocks come from disks
    static LoadSources acquire(
            LocalKvCache cache,
            @Nullable CudaTier tier,
            BlockChain chain,
            int from,
            Duration timeout,
            TableMaker acquire) {
        DeviceBlockMap device = tier == null ? DeviceBlockMap.empty() : tier.acquireEach(chain, from, chain.length());
        try {
            if (device.isEmpty()) {
                return new LoadSources(chain, from, device, acquire.acquire(chain, from, timeout));
            }
            // Holds what is resident until the table of the request has it: this one counts as no look-up.
            try (BlockTable resident = cache.acquireCopy(chain, from, Duration.ZERO)) {
                boolean hasAll = new LoadSources(chain, from, device, resident).endBlock() == chain.length();
                BlockTable table = acquire.acquire(chain, from, hasAll ? Duration.ZERO : timeout);
                return new LoadSources(chain, from, device, table).counted(cache, resident.endBlock());
            }
        } catch (RuntimeException | Error failed) {
            device.close();
            throw failed;
        }
    }

    /// What a disk is read for counts as loaded, also where the device has it.
    ///
    /// @param hostEnd block after the last one that host memory had
    private LoadSources counted(LocalKvCache cache, int hostEnd) {
        int tableEnd = Math.max(first, table.endBlock());
        int alone = Math.max(0, endBlock() - tableEnd);
        int hostToo = (int) IntStream.range(first, Math.min(tableEnd, hostEnd))
                .filter(device::contains)
                .count();
        cache.countFromDevice(chain.namespace(), hostToo + alone, alone);
        return this;
    }

    /// Block after the last one that comes or has come; it may fall while blocks are on their way from a disk.
    int endBlock() {
        return endBehind(table.endBlock());
    }

    /// Block after the last one, if the table has what is before `here`.
    private int endBehind(int here) {
        int end = Math.max(first, here);
        while (end < chain.length() && device.contains(end)) {
            end++;
        }
        return end;
    }

    /// Leading blocks that come or have come.
    int blocks() {
        return endBlock() - first;
    }

    /// Waits until all are here that come.
    ///
    /// @return how many
    int await(Duration timeout) {
        return endBehind(table.await(table.endBlock(), timeout)) - first;
    }

    /// As [BlockTable#readyLayers].
    int readyLayers() {
        return table.readyLayers();
    }

    /// As [BlockTable#awaitLayers].
    void awaitLayers(int layers, Duration timeout) {
        table.awaitLayers(layers, timeout);
    }

    /// What is copied of the leading blocks.
    ///
    /// @param layout of some layers, or all
    /// @param from first byte of these layers in a block
    /// @param pages of each block
    Pieces pieces(PagedLayout layout, long from, List<int[]> pages) {
        Pieces pieces = new Pieces(new ArrayList<>(), new ArrayList<>(), new ArrayList<>(), device.memory());
        long bytes = layout.blockBytes();
        for (int number = 0; number < Math.min(blocks(), pages.size()); number++) {
            int index = first + number;
            if (device.contains(index)) {
                pieces.onDevice.add(new DeviceBlock(device.span(index).slice(from, bytes), pages.get(number)));
                continue;
            }
            MemorySegment ready = table.readySegment(index);
            if (ready.byteSize() < from + bytes) {
                break; // it does not come, as was not known a moment ago
            }
            pieces.blocks.add(ready.asSlice(from, bytes));
            pieces.pages.add(pages.get(number));
        }
        return pieces;
    }

    @Override
    public void close() {
        table.close();
        device.close();
    }
}
