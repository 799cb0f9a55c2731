package io.kvcache.core;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/// A table that forwards every call to another one. Extend it to change some calls and keep the rest.
///
/// **Ownership.** Closing it closes the table behind it.
///
/// **Threads.** As the table behind it.
public abstract class ForwardingBlockTable implements BlockTable {

    private final BlockTable delegate;

    /// @param delegate receives every call that is not overridden
    protected ForwardingBlockTable(BlockTable delegate) {
        this.delegate = delegate;
    }

    /// The table behind this one.
    protected final BlockTable delegate() {
        return delegate;
    }

    @Override
    public int firstBlock() {
        return delegate.firstBlock();
    }

    @Override
    public int endBlock() {
        return delegate.endBlock();
    }

    @Override
    public int readyEnd() {
        return delegate.readyEnd();
    }

    @Override
    public int await(int end, Duration timeout) {
        return delegate.await(end, timeout);
    }

    @Override
    public CompletionStage<Integer> onReady(int end, Executor executor) {
        return delegate.onReady(end, executor);
    }

    @Override
    public int readyLayers() {
        return delegate.readyLayers();
    }

    @Override
    public int awaitLayers(int layers, Duration timeout) {
        return delegate.awaitLayers(layers, timeout);
    }

    @Override
    public CompletionStage<Integer> onLayers(int layers, Executor executor) {
        return delegate.onLayers(layers, executor);
    }

    @Override
    public MemorySegment readySegment(int index) {
        return delegate.readySegment(index);
    }

    @Override
    public MemorySegment segment(int index) {
        return delegate.segment(index);
    }

    @Override
    public int checksum(int index) {
        return delegate.checksum(index);
    }

    @Override
    public long handle(int index) {
        return delegate.handle(index);
    }

    @Override
    public boolean isValid() {
        return delegate.isValid();
    }

    @Override
    public int blocksToRecompute() {
        return delegate.blocksToRecompute();
    }

    @Override
    @SuppressWarnings("ReferenceEquality") // the very table
    public BlockTable part(int part) {
        BlockTable found = delegate.part(part);
        return found == delegate ? this : found;
    }

    @Override
    public void copyTo(int index, MemorySegment target) {
        delegate.copyTo(index, target);
    }

    @Override
    public void close() {
        delegate.close();
    }
}
