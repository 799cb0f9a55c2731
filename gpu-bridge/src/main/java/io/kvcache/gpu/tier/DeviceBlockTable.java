package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import java.util.List;
import java.util.Objects;

/// The blocks of one sequence that are in a device's memory, in chain order: blocks `[firstBlock,
/// endBlock)`.
///
/// While the table is open they stay where they are and as they are, so an engine may read them by
/// kernels or copies of its own, in the same process and context. What it reads, it must have read before
/// it closes the table. A tier that failed keeps them too, unless the device itself has ended
/// ([io.kvcache.gpu.driver.DeviceError#isFatal]): then nothing that runs there can be relied on.
///
/// **Ownership.** The caller closes the table, once.
///
/// **Threads.** Any.
public final class DeviceBlockTable implements AutoCloseable {

    private final int firstBlock;
    private List<DeviceEntry> entries;
    private boolean closed;

    DeviceBlockTable(int firstBlock, List<DeviceEntry> entries) {
        this.firstBlock = firstBlock;
        this.entries = List.copyOf(entries);
    }

    synchronized int blocks() {
        return entries.size();
    }

    synchronized DeviceEntry entry(int number) {
        return entries.get(number);
    }

    /// Unpins all but the first `blocks` blocks.
    synchronized void truncate(int blocks) {
        entries.subList(blocks, entries.size()).forEach(entry -> entry.region().unpin());
        entries = List.copyOf(entries.subList(0, blocks));
    }

    /// First block of the chain in this table.
    public int firstBlock() {
        return firstBlock;
    }

    /// Block after the last one in this table.
    public int endBlock() {
        return firstBlock + blocks();
    }

    /// Returns the memory of block `index` of the chain: its bytes as they were put, one after the other.
    ///
    /// @throws IndexOutOfBoundsException when the table does not have it
    /// @throws IllegalStateException when the table is closed
    public synchronized DeviceSpan span(int index) {
        if (closed) {
            throw new IllegalStateException("the table is closed");
        }
        return entries.get(Objects.checkIndex(index - firstBlock, entries.size()))
                .span();
    }

    /// Address of the first byte of block `index` of the chain.
    public DeviceAddress address(int index) {
        return span(index).address();
    }

    /// Gives the blocks free. A second close does nothing.
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        entries.forEach(entry -> entry.region().unpin());
    }
}
