package io.kvcache.tiers.device;

import java.lang.foreign.MemorySegment;

/// A device that forwards every call to another. A subclass overrides only the calls that it changes.
///
/// **Ownership.** Closing it closes the device below, unless the subclass says otherwise.
public abstract class ForwardingDevice implements BlockDevice {

    private final BlockDevice below;

    /// @param below a device without another user
    protected ForwardingDevice(BlockDevice below) {
        this.below = below;
    }

    /// The device that gets the calls.
    protected final BlockDevice below() {
        return below;
    }

    @Override
    public long size() {
        return below.size();
    }

    @Override
    public int depth() {
        return below.depth();
    }

    @Override
    public int inFlight() {
        return below.inFlight();
    }

    @Override
    public boolean read(MemorySegment target, long offset, long tag) {
        return below.read(target, offset, tag);
    }

    @Override
    public boolean write(MemorySegment source, long offset, long tag) {
        return below.write(source, offset, tag);
    }

    @Override
    public boolean sync(long tag) {
        return below.sync(tag);
    }

    @Override
    public boolean discard(long offset, long length, long tag) {
        return below.discard(offset, length, tag);
    }

    @Override
    public void submit() {
        below.submit();
    }

    @Override
    public int poll(CompletionSink sink) {
        return await(sink, 0);
    }

    @Override
    public int await(CompletionSink sink, long timeoutNanos) {
        return below.await(sink, timeoutNanos);
    }

    @Override
    public void register(MemorySegment pool) {
        below.register(pool);
    }

    @Override
    public void wake() {
        below.wake();
    }

    @Override
    public String describe() {
        return below.describe();
    }

    @Override
    public String lossCause() {
        return below.lossCause();
    }

    @Override
    public void close() {
        below.close();
    }
}
