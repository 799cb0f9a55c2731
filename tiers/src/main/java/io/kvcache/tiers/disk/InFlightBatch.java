package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

/// A group on its way to the device: the head and every piece of every block a write of its own, straight
/// from where it lies. It is written when all of them are; if one fails, none of its blocks counts.
final class InFlightBatch {

    private final long number;
    private final OpenRegion into;
    private final PlacedBatch placed;
    private final List<PendingAppend> appends;
    private final MemorySegment head;
    private final Consumer<InFlightBatch> callback;
    private int left;
    private boolean failed;

    /// Where a group comes from and goes to.
    ///
    /// @param number counts groups in the order in which they are begun
    record BatchContents(long number, OpenRegion into, List<PendingAppend> appends, MemorySegment head) {}

    /// @param then what follows when all writes have ended
    InFlightBatch(BatchContents batchContents, Consumer<InFlightBatch> then) {
        this.number = batchContents.number;
        this.into = batchContents.into;
        this.appends = batchContents.appends;
        this.head = batchContents.head;
        this.callback = then;
        this.placed = into.placeBatch(appends.stream().map(PendingAppend::entry).toList());
    }

    /// Hands all writes over.
    void start(DeviceOperationQueue deviceOperationQueue, RegionTable regionTable) {
        WriteBatchHeader batchHeader = placed.batchHeader();
        batchHeader.write(head);
        left = 1
                + appends.stream()
                        .mapToInt(each -> each.bufferList().spans().size())
                        .sum();
        deviceOperationQueue.add(DeviceOperation.write(
                WriteKind.HEAD, head, regionTable.offset(into.region(), batchHeader.page()), this::onWriteComplete));
        for (int i = 0; i < appends.size(); i++) {
            PendingAppend append = appends.get(i);
            long offset = regionTable.offset(
                    into.region(), batchHeader.entries().get(i).page());
            for (MemorySegment span : append.bufferList().spans()) {
                deviceOperationQueue.add(DeviceOperation.write(append.kind(), span, offset, this::onWriteComplete));
                offset += span.byteSize();
            }
        }
    }

    private void onWriteComplete(IoOutcome outcome) {
        failed |= !outcome.isDone();
        left--;
        if (left == 0) {
            if (!failed) {
                placed.markWritten();
            }
            into.onBatchEnded(placed);
            callback.accept(this);
        }
    }

    Stream<PendingAppend> appends() {
        return appends.stream();
    }

    OpenRegion into() {
        return into;
    }

    MemorySegment head() {
        return head;
    }

    boolean hasFailed() {
        return failed;
    }

    /// Counts groups in the order in which they were begun.
    long number() {
        return number;
    }

    /// Tells everybody where their blocks are.
    void notifyAppends() {
        List<DiskEntry> entries = placed.batchHeader().entries();
        for (int i = 0; i < appends.size(); i++) {
            long address = failed
                    ? LogAddress.NONE
                    : into.region().addressOf(entries.get(i).page());
            appends.get(i).completion().complete(address);
        }
    }
}
