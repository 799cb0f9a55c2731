package io.kvcache.transport.wire;

import io.kvcache.core.shm.SharedMemoryFiles;
import io.kvcache.core.shm.StagingHeader;

/// What SHARE is answered by: `u64 epoch, text directory, text slots, text records`.
public final class SharedMemoryCodec {

    private SharedMemoryCodec() {}

    public static void write(SharedMemoryFiles files, BodyWriter to) {
        to.i64(files.epoch()).text(files.directory()).text(files.slots()).text(files.records());
    }

    public static SharedMemoryFiles read(BodyReader from) throws ProtocolException {
        long epoch = from.i64("epoch");
        return new SharedMemoryFiles(from.text("directory"), from.text("slots"), from.text("records"), epoch);
    }

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
}
