package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/// A table behind whose end there are blocks on disk that are better computed.
///
/// @param blocksToRecompute how many
record RecomputeAdvisedTable(BlockTable table, int blocksToRecompute) implements BlockTable {

    static BlockTable of(BlockTable table, int cheaperComputed) {
        return cheaperComputed == 0 ? table : new RecomputeAdvisedTable(table, cheaperComputed);
    }

    @Override
    public int firstBlock() {
        return table.firstBlock();
    }

    @Override
    public int endBlock() {
        return table.endBlock();
    }

    @Override
    public int readyBlocks() {
        return table.readyBlocks();
    }

    @Override
    public int await(int blocks, long timeoutNanos) {
        return table.await(blocks, timeoutNanos);
    }

    @Override
    public CompletionStage<Integer> onReady(int blocks, Executor executor) {
        return table.onReady(blocks, executor);
    }

    @Override
    public MemorySegment segment(int index) {
        return table.segment(index);
    }

    @Override
    public int checksum(int index) {
        return table.checksum(index);
    }

    @Override
    public long handle(int index) {
        return table.handle(index);
    }

    @Override
    public boolean isValid() {
        return table.isValid();
    }

    @Override
    public void copyTo(int index, MemorySegment target) {
        table.copyTo(index, target);
    }

    @Override
    public void close() {
        table.close();
    }
}
