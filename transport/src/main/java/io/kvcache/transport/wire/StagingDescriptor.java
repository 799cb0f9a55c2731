package io.kvcache.transport.wire;

import io.kvcache.core.shm.StagingHeader;

/// What STAGE is answered by: memory that this session may write into.
/// `u64 bytes, u64 ticket, text file`.
///
/// @param bytes that are the client's, behind the [StagingHeader]
/// @param head what the file begins with
/// @param file name in the directory that SHARE told
public record StagingDescriptor(long bytes, StagingHeader head, String file) {

    public void write(BodyWriter to) {
        to.i64(bytes).i64(head.ticket()).text(file);
    }

    public static StagingDescriptor read(BodyReader from) throws ProtocolException {
        long bytes = from.nonNegativeLong("bytes");
        return new StagingDescriptor(bytes, new StagingHeader(from.i64("ticket")), from.text("file"));
    }
}
