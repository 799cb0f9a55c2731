package io.kvcache.core;

import io.kvcache.core.time.Timeouts;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/// The table of a miss: holds nothing.
record EmptyBlockTable(int firstBlock) implements BlockTable {

    @Override
    public int endBlock() {
        return firstBlock;
    }

    @Override
    public int readyEnd() {
        return firstBlock;
    }

    @Override
    public int await(int end, Duration timeout) {
        Timeouts.requireNotNegative(timeout);
        return firstBlock;
    }

    @Override
    public CompletionStage<Integer> onReady(int end, Executor executor) {
        return CompletableFuture.supplyAsync(() -> firstBlock, executor);
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
    public long handle(int index) {
        throw new IndexOutOfBoundsException("block " + index + " of an empty table");
    }

    @Override
    public boolean isValid() {
        return true;
    }

    @Override
    public int blocksToRecompute() {
        return 0;
    }

    @Override
    public void close() {
        // It holds nothing.
    }
}
