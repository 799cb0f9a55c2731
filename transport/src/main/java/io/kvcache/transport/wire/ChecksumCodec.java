package io.kvcache.transport.wire;

import org.jspecify.annotations.Nullable;

/// The checksum of bytes that a client puts: `u32 checksum, u32 flags`. Flag 1: there is none, and the server computes
/// it of what has arrived.
public final class ChecksumCodec {

    private static final int UNKNOWN = 1;

    private ChecksumCodec() {}

    public static BodyWriter write(@Nullable Integer checksum, BodyWriter to) {
        return checksum == null ? to.i32(0).i32(UNKNOWN) : to.i32(checksum).i32(0);
    }

    /// Returns the checksum, or null when the client does not know it.
    public static @Nullable Integer read(BodyReader from) throws ProtocolException {
        int checksum = from.i32("checksum");
        return (from.i32("flags") & UNKNOWN) == 0 ? (Integer) checksum : null;
    }
}
