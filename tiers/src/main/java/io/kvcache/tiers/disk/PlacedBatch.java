package io.kvcache.tiers.disk;

/// A group with its place in a region, and whether it got there.
final class PlacedBatch {

    private final WriteBatchHeader batchHeader;
    private boolean written;

    PlacedBatch(WriteBatchHeader batchHeader, boolean written) {
        this.batchHeader = batchHeader;
        this.written = written;
    }

    WriteBatchHeader batchHeader() {
        return batchHeader;
    }

    boolean isWritten() {
        return written;
    }

    void markWritten() {
        written = true;
    }
}
