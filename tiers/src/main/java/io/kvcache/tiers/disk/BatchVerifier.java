package io.kvcache.tiers.disk;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// Reads the blocks of a group that only its head vouches for, and finds out which of them are whole.
///
/// Without this, a block that was being written again when the power went would hide the sound one that it
/// was a copy of. It costs one reading of the regions that were open.
final class BatchVerifier {

    /// Read at a time: sequential reads of this size are nearly as fast as larger ones.
    static final int SPAN_BYTES = 256 << 10;

    private final DeviceOperationQueue deviceOperationQueue;
    private final RegionTable regionTable;
    private final MemorySegment buffer;
    private final Region region;
    private final WriteBatchHeader batchHeader;
    private final Consumer<List<DiskEntry>> callback;
    private final List<DiskEntry> sound = new ArrayList<>();
    private int nextPage;
    private int index;
    private ChunkedCrc crc = new ChunkedCrc();
    private long checksummedBytes;
    private boolean failed;

    /// Where a group is read from.
    record Source(
            DeviceOperationQueue deviceOperationQueue, RegionTable regionTable, Region region, MemorySegment buffer) {}

    /// @param then told those that are whole, in their order
    BatchVerifier(Source source, WriteBatchHeader batchHeader, Consumer<List<DiskEntry>> then) {
        this.deviceOperationQueue = source.deviceOperationQueue;
        this.regionTable = source.regionTable;
        this.region = source.region;
        this.buffer = source.buffer;
        this.batchHeader = batchHeader;
        this.callback = then;
        this.nextPage = batchHeader.page() + WriteBatchHeader.HEAD_PAGES;
    }

    void read() {
        skipTombstones();
        int end = batchHeader.page() + batchHeader.pages();
        if (nextPage == end) {
            callback.accept(sound);
            return;
        }
        long left = (long) (end - nextPage) * DiskGeometry.PAGE_BYTES;
        MemorySegment span = buffer.asSlice(0, Math.min(left, SPAN_BYTES));
        long offset = regionTable.offset(region, nextPage);
        nextPage += (int) (span.byteSize() / DiskGeometry.PAGE_BYTES);
        deviceOperationQueue.add(DeviceOperation.read(span, offset, outcome -> onRead(span, outcome)));
    }

    /// Tombstones have no bytes that could be torn.
    private void skipTombstones() {
        while (index < batchHeader.entries().size()
                && batchHeader.entries().get(index).isTombstone()) {
            sound.add(batchHeader.entries().get(index));
            index++;
        }
    }

    private void onRead(MemorySegment span, IoOutcome outcome) {
        for (long at = 0; at < span.byteSize(); ) {
            at += addToChecksum(span.asSlice(at), outcome.isDone());
        }
        read();
    }

    /// Adds what belongs to the current block.
    ///
    /// @return bytes of the span that do
    private long addToChecksum(MemorySegment span, boolean done) {
        DiskEntry entry = batchHeader.entries().get(index);
        long blockBytes = (long) entry.pages() * DiskGeometry.PAGE_BYTES;
        long taken = Math.min(blockBytes - checksummedBytes, span.byteSize());
        crc.update(span.asSlice(0, Math.clamp(entry.bytes() - checksummedBytes, 0, taken)));
        failed |= !done;
        checksummedBytes += taken;
        if (checksummedBytes == blockBytes) {
            if (!failed && crc.value() == entry.checksum()) {
                sound.add(entry);
            }
            index++;
            crc = new ChunkedCrc();
            checksummedBytes = 0;
            failed = false;
            skipTombstones();
        }
        return taken;
    }
}
