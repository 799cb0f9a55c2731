package io.kvcache.gpu.tier;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierRead.Outcome;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/// Takes blocks to the device and brings them back, and counts.
///
/// Owned by the tier's thread, but for the counters.
final class DeviceTierIo {

    private final DeviceTierResources device;
    private final DeviceRegions regions;
    private final DeviceIndex index;
    private final TierListener listener;
    private volatile long written;
    private volatile long writtenBytes;
    private volatile long writtenPages;
    private volatile long writesFailed;
    private volatile long readsGood;
    private volatile long readErrors;
    private volatile long checksumErrors;

    DeviceTierIo(DeviceTierResources device, DeviceRegions regions, DeviceIndex index, TierListener listener) {
        this.device = device;
        this.regions = regions;
        this.index = index;
        this.listener = listener;
    }

    /// Takes a block that fits a region.
    SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag) {
        CopyQueue copyQueue = device.uploads();
        DeviceEntry entry = copyQueue.isFull() ? null : regions.allocate(block, false);
        if (entry == null) {
            return SubmitResult.RETRY;
        }
        entry.region().beginUse();
        forEachPiece(
                pages,
                block.bytes(),
                (offset, piece) ->
                        copyQueue.batch().add(piece, entry.span().address().plus(offset)));
        copyQueue.onComplete(copied -> {
            entry.region().endUse();
            onWriteEnded(entry, copied);
            listener.onWritten(tag, copied ? entry.place() : -1);
        });
        return SubmitResult.ACCEPTED;
    }

    @SuppressWarnings("NonAtomicVolatileUpdate") // one thread writes
    private void onWriteEnded(DeviceEntry entry, boolean copied) {
        if (copied) {
            index.add(entry);
            written++;
            writtenBytes += entry.block().bytes();
            writtenPages += DeviceGeometry.pages(entry.block().bytes());
        } else {
            writesFailed++;
        }
    }

    SubmitResult read(TierRead read) {
        DeviceRegion region = regions.regionAt(read.address());
        if (region == null) {
            return SubmitResult.GONE;
        }
        CopyQueue copyQueue = device.downloads();
        if (copyQueue.isFull()) {
            return SubmitResult.RETRY;
        }
        long start = DeviceEntry.offsetOf(read.address());
        region.beginUse();
        forEachPiece(
                read.pages(),
                read.bytes(),
                (offset, piece) -> copyQueue
                        .batch()
                        .add(
                                piece,
                                region.span(start + offset, piece.byteSize()).address()));
        copyQueue.onComplete(copied -> {
            region.endUse();
            listener.onRead(read.tag(), copied ? verifyChecksum(read) : onUnreadable());
        });
        return SubmitResult.ACCEPTED;
    }

    @SuppressWarnings("NonAtomicVolatileUpdate") // one thread writes
    private Outcome onUnreadable() {
        readErrors++;
        return Outcome.UNREADABLE;
    }

    @SuppressWarnings("NonAtomicVolatileUpdate") // one thread writes
    private Outcome verifyChecksum(TierRead read) {
        ChunkedCrc crc = new ChunkedCrc();
        forEachPiece(read.pages(), read.bytes(), (_, piece) -> crc.update(piece));
        if (crc.value() == read.checksum()) {
            readsGood++;
            return Outcome.SUCCESS;
        }
        checksumErrors++;
        return Outcome.CORRUPT;
    }

    /// The pieces that so many bytes take of their pages, each with its offset.
    private static void forEachPiece(List<MemorySegment> pages, long bytes, BiConsumer<Long, MemorySegment> use) {
        long offset = 0;
        for (MemorySegment piece : pages) {
            long length = Math.min(piece.byteSize(), bytes - offset);
            if (length > 0) {
                use.accept(offset, piece.asSlice(0, length));
                offset += length;
            }
        }
    }

    /// What was done, in the order of [io.kvcache.core.tier.TierStats]: blocks and bytes written, writes
    /// failed, all bytes, reads by their outcomes.
    long[] counts(@Nullable DeviceReclaimer deviceReclaimer) {
        long moved = deviceReclaimer == null ? 0 : deviceReclaimer.keptBytes();
        return new long[] {
            written, writtenBytes, writesFailed, writtenPages + moved, readsGood, readErrors, checksumErrors
        };
    }
}
