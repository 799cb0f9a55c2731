package io.kvcache.bench.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.BlockDevice.CompletionSink;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.simulation.ForwardingDevice;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Queue;

/// Writes superblocks and trailers to the device below and forgets everything else, so that a tier of any size
/// costs no more than its trailers.
final class TrailerOnlyDevice extends ForwardingDevice {

    private static final int ROWS_PER_PAGE = 64;

    private final DiskGeometry geometry;
    private final Queue<Long> discardedTags = new ArrayDeque<>();

    TrailerOnlyDevice(BlockDevice below, DiskGeometry geometry) {
        super(below);
        this.geometry = geometry;
    }

    /// The longest table has a row of 64 bytes for each page of its region, and behind it is the footer.
    private boolean isMetadata(long offset) {
        long inRegions = offset - geometry.regionOffset(0);
        long trailerBytes = (geometry.regionPages() / ROWS_PER_PAGE + 2L) * DiskGeometry.PAGE_BYTES;
        return inRegions < 0 || inRegions % geometry.regionBytes() >= geometry.regionBytes() - trailerBytes;
    }

    @Override
    public boolean write(MemorySegment source, long offset, long tag) {
        return isMetadata(offset) ? below().write(source, offset, tag) : discardWrite(tag);
    }

    /// The log waits for a sync after each region; nobody needs these.
    @Override
    public boolean sync(long tag) {
        return discardWrite(tag);
    }

    private boolean discardWrite(long tag) {
        return inFlight() < depth() && discardedTags.add(tag);
    }

    @Override
    public int await(CompletionSink sink, long timeoutNanos) {
        int count = discardedTags.size();
        for (int i = 0; i < count; i++) {
            sink.completed(discardedTags.remove(), IoOutcome.DONE);
        }
        return count + below().await(sink, count > 0 ? 0 : timeoutNanos);
    }

    @Override
    public int inFlight() {
        return below().inFlight() + discardedTags.size();
    }

    @Override
    public boolean discard(long offset, long length, long tag) {
        return discardWrite(tag);
    }

    @Override
    public String describe() {
        return "trailers only, " + below().describe();
    }
}
