package io.kvcache.core;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/// The pinned blocks of one sequence, in chain order: blocks `[firstBlock, endBlock)`. Every index counts blocks
/// of the chain, not of the table.
///
/// While the table is open its blocks neither move nor change. Closing it releases them all; a segment must not be
/// used afterwards (a checked store makes it throw).
///
/// **Ownership.** The caller that acquired the table closes it; a second close does nothing.
///
/// **Threads.** Any; the table may be closed by another thread than the one that acquired it.
public interface BlockTable extends AutoCloseable {

    /// What [#readyLayers] answers once all blocks of the table are ready, however many layers they have.
    int ALL_LAYERS = Integer.MAX_VALUE;

    /// Returns an empty table, as for a miss.
    ///
    /// @param firstBlock its first block and its end
    static BlockTable empty(int firstBlock) {
        return new EmptyBlockTable(firstBlock);
    }

    /// First block of the chain in this table.
    int firstBlock();

    /// Block after the last one that this table has or still expects.
    int endBlock();

    /// Block after the last one that can be read now: blocks `[firstBlock(), readyEnd())` are ready. Never waits
    /// and never decreases.
    int readyEnd();

    /// Number of blocks that this table has or still expects.
    default int blocks() {
        return endBlock() - firstBlock();
    }

    /// Number of blocks that can be read now, from the first on.
    default int readyBlocks() {
        return readyEnd() - firstBlock();
    }

    /// Waits until all blocks before block `end` of the chain are ready, no more will come, or the timeout passes.
    ///
    /// @param end block of the chain, usually [#endBlock]
    /// @return [#readyEnd], perhaps less than `end`
    int await(int end, Duration timeout);

    /// Completes on `executor` with [#readyEnd] once all blocks before block `end` are ready or no more will come.
    ///
    /// When the executor rejects the task, the stage fails with the executor's exception. Closing the table
    /// completes the stage with the blocks that were ready by then, and nothing keeps a reference to the table.
    CompletionStage<Integer> onReady(int end, Executor executor);

    /// Number of layers, from the first on, that all blocks `[firstBlock(), endBlock())` have here by now, of a
    /// table from [KvCache#acquireByLayers]. Other tables have none until all their blocks are ready.
    ///
    /// It never decreases. Blocks that do not arrive are left out as soon as that is known: ask [#endBlock] which
    /// of them the layers are of, at the latest when all layers are ready. What was read of the others is to be
    /// forgotten.
    ///
    /// @return [#ALL_LAYERS] when nothing more will come, also when no block has come: see [#endBlock]
    default int readyLayers() {
        return readyEnd() >= endBlock() ? ALL_LAYERS : 0;
    }

    /// Waits until all blocks of the table have their first `layers` layers here, no more will come, the timeout
    /// passes, or the thread is interrupted.
    ///
    /// @return [#readyLayers], perhaps less than `layers`, or more
    default int awaitLayers(int layers, Duration timeout) {
        await(endBlock(), timeout);
        return readyLayers();
    }

    /// Completes on `executor` with [#readyLayers] once all blocks of the table have their first `layers` layers
    /// here or no more will come; else as [#onReady].
    default CompletionStage<Integer> onLayers(int layers, Executor executor) {
        return onReady(endBlock(), executor).thenApply(_ -> readyLayers());
    }

    /// The bytes of block `index` of the chain that are here, read-only, in place: all of them, or those of its
    /// first layers, at least as many as [#readyLayers] gave before. So the segment grows from call to call; where
    /// a layer lies in it tells [io.kvcache.core.identity.BlockShape#layerSlice].
    ///
    /// Of a block that did not come after all, the layers that had come stay readable until the table is closed.
    ///
    /// @param index `firstBlock()` and up
    /// @return empty when nothing of the block is here
    /// @throws IndexOutOfBoundsException when `index` is before the table
    /// @throws IllegalStateException when the table is closed
    default MemorySegment readySegment(int index) {
        return index < readyEnd() ? segment(index) : MemorySegment.NULL;
    }

    /// The bytes of block `index` of the chain, read-only, in place.
    ///
    /// @param index `firstBlock() <= index < readyEnd()`
    /// @throws IndexOutOfBoundsException when the block is not ready
    /// @throws IllegalStateException when the table is closed
    MemorySegment segment(int index);

    /// The checksum of block `index` of the chain, as it was computed when the block was sealed:
    /// [io.kvcache.core.memory.ChunkedCrc] over its bytes.
    ///
    /// @throws IndexOutOfBoundsException when the block is not ready
    /// @throws IllegalStateException when the table is closed
    int checksum(int index);

    /// Returns the record handle of block `index` of the chain, for clients that map the store's memory.
    ///
    /// @return a [io.kvcache.core.tree.RecordHandle]; [io.kvcache.core.tree.RecordHandle#MISS] of a table that has
    ///     no records
    /// @throws IndexOutOfBoundsException when the block is not ready
    /// @throws IllegalStateException when the table is closed
    long handle(int index);

    /// Returns whether everything read through the segments so far was this table's data. Call it **after** reading
    /// and before closing.
    ///
    /// False is possible only for a table over another process's memory. That process keeps the blocks in place
    /// while it hears from this one. If this process was stopped for longer, it may have read other data.
    boolean isValid();

    /// Number of blocks behind [#endBlock] that were left in a slower tier, because computing them takes less time
    /// than loading them or they would arrive too late. 0 if the store has no estimate of the cost of computing.
    int blocksToRecompute();

    /// The entries of a window or state that a match of [#endBlock] blocks needs: of a window those that reach
    /// into it, of a state the one behind the last block. They arrive with the blocks: none is ready before all
    /// are.
    ///
    /// In the table that is returned an index counts entries ([io.kvcache.core.identity.PartGroup]) from the first
    /// one of the chain. It is closed with this table.
    ///
    /// @param part number of a part of the namespace
    /// @return this table for parts that are in the blocks themselves
    default BlockTable part(int part) {
        return this;
    }

    /// Copies block `index` of the chain.
    ///
    /// @param target native or heap memory, at least as large as the block
    default void copyTo(int index, MemorySegment target) {
        MemorySegment block = segment(index);
        MemorySegment.copy(block, 0, target, 0, block.byteSize());
    }

    /// Releases the blocks and cancels loads that only this table waits for.
    @Override
    void close();
}
