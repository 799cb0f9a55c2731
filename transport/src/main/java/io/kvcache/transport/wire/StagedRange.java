package io.kvcache.transport.wire;

/// Where in its session's staging memory a client has written what it puts, and what it says of it:
/// `u64 offset, u64 bytes, u32 checksum, u32 0`.
///
/// @param offset from the first byte behind the head
/// @param bytes of the block or object
/// @param checksum of them, and of the key of an object behind them
public record StagedRange(long offset, long bytes, int checksum) {

    public BodyWriter write(BodyWriter to) {
        return to.i64(offset).i64(bytes).i32(checksum).i32(0);
    }

    public static StagedRange read(BodyReader from) throws ProtocolException {
        long offset = from.nonNegativeLong("offset");
        long bytes = from.nonNegativeLong("bytes");
        int checksum = from.i32("checksum");
        from.skip(Integer.BYTES);
        return new StagedRange(offset, bytes, checksum);
    }
}
