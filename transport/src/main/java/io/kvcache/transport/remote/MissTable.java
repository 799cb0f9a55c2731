package io.kvcache.transport.remote;

import io.kvcache.core.BlockTable;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;

/// The table of a question that was not answered: holds nothing.
final class MissTable implements BlockTable {

    private final Wiring wiring;
    private final int firstBlock;
    private final AtomicBoolean closed = new AtomicBoolean();

    MissTable(Wiring wiring, int firstBlock) {
        this.wiring = wiring;
        this.firstBlock = firstBlock;
        wiring.open().incrementAndGet();
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
        Arguments.timeout(timeoutNanos);
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
        wiring.open().decrementAndGet();
    }
}
