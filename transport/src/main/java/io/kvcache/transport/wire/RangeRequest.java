package io.kvcache.transport.wire;

/// What READ_RANGE asks for, behind its chain: the same bytes of several blocks.
///
/// @param from first block wanted
/// @param count blocks wanted, 1 to [#MAX_BLOCKS]
/// @param offset the first byte of each block
/// @param bytes of each block, 1 and up; of all blocks together [#MAX_BYTES] at most
/// @param timeoutNanos how long to wait for blocks in slower tiers
public record RangeRequest(int from, int count, int offset, int bytes, long timeoutNanos) {

    /// As many as keys of objects in one message.
    public static final int MAX_BLOCKS = 8192;

    /// What a fast network moves in a few milliseconds. The server has it in memory for that long.
    public static final int MAX_BYTES = 16 << 20;

    /// @throws IllegalArgumentException when a number is out of range
    public RangeRequest {
        if (count < 1 || count > MAX_BLOCKS) {
            throw new IllegalArgumentException("count = %s; allowed: 1 to %s".formatted(count, MAX_BLOCKS));
        }
        if (bytes < 1 || bytes > MAX_BYTES / count) {
            throw new IllegalArgumentException("bytes = %s of each of %s blocks; allowed: 1 to %s, and %s of all"
                    .formatted(bytes, count, MAX_BYTES / count, MAX_BYTES));
        }
    }

    /// Returns how many blocks one request may ask for, of ranges of this size; 0 when not even one.
    public static int maxBlocks(long bytes) {
        return (int) Math.min(MAX_BLOCKS, MAX_BYTES / bytes);
    }

    /// Writes the fields in their order.
    public void write(BodyWriter to) {
        to.i32(from).i32(count).i32(offset).i32(bytes).i64(timeoutNanos);
    }

    /// Reads what [#write] wrote.
    ///
    /// @throws IllegalArgumentException when a number is out of range
    public static RangeRequest read(BodyReader from) throws ProtocolException {
        int first = from.count("from");
        int count = from.count("count");
        int offset = from.count("offset");
        int bytes = from.count("bytes");
        return new RangeRequest(first, count, offset, bytes, from.nonNegativeLong("timeout"));
    }
}
