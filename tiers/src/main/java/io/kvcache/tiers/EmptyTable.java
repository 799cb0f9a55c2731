package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;

/// The table of a miss: holds nothing.
final class EmptyTable implements BlockTable {

    private final int firstBlock;
    private final AtomicBoolean closed = new AtomicBoolean();

    EmptyTable(int firstBlock) {
        this.firstBlock = firstBlock;
    }

    @Override
    public int firstBlock() {
        return firstBlock;
    }

    @Override
    public int endBlock() {
        return firstBlock;
    }

    @Override
    public int readyBlocks() {
        return 0;
    }

    @Override
    public int await(int blocks, long timeoutNanos) {
        Waiting.requireNotNegative(timeoutNanos);
        return 0;
    }

    @Override
    public CompletionStage<Integer> onReady(int blocks, Executor executor) {
        return CompletableFuture.supplyAsync(() -> 0, executor);
    }

    @Override
    public MemorySegment segment(int index) {
        throw new IndexOutOfBoundsException("block " + index + " of an empty table");
    }

    @Override
    public int checksum(int index) {
        throw new IndexOutOfBoundsException("block " + index + " of an empty table");
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            throw new IllegalStateException("the table is closed twice");
        }
    }
}
