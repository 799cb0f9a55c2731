package io.kvcache.core.identity;

/// A contiguous run of bytes inside a block: `[offset, offset + bytes)`.
public record ByteRange(long offset, long bytes) {

    private static final ValueRange OFFSET = new ValueRange("offset", 0, BlockShape.MAX_BYTES);
    private static final ValueRange BYTES = new ValueRange("bytes", 1, BlockShape.MAX_BYTES);

    public ByteRange {
        OFFSET.check(offset);
        BYTES.check(bytes);
    }

    /// The first byte after the range.
    public long end() {
        return offset + bytes;
    }
}
