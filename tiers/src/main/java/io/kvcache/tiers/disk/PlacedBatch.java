package io.kvcache.tiers.disk;

/// A group with its place in a region, and whether it got there.
final class PlacedBatch {

    private final WriteBatch writeBatch;
    private boolean written;

    PlacedBatch(WriteBatch writeBatch, boolean written) {
        this.writeBatch = writeBatch;
        this.written = written;
    }

    WriteBatch writeBatch() {
        return writeBatch;
    }

    boolean isWritten() {
        return written;
    }

    void markWritten() {
        written = true;
    }
}
