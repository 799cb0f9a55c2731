package io.kvcache.transport.wire;

import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.shm.StagingArea.StagingHeader;
import org.jspecify.annotations.Nullable;

/// Reply to SHARE: `u64 epoch, text directory, text slots, text records`.
public final class SharedMemoryCodec {

    private SharedMemoryCodec() {}

    public static void write(SharedMemoryFiles files, BodyWriter to) {
        to.i64(files.epoch()).text(files.directory()).text(files.slots()).text(files.records());
    }

    public static SharedMemoryFiles read(BodyReader from) throws ProtocolException {
        long epoch = from.i64("epoch");
        return new SharedMemoryFiles(from.text("directory"), from.text("slots"), from.text("records"), epoch);
    }

    /// Reply to STAGE: memory that this session may write into. `u64 bytes, u64 ticket, text file`.
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

    /// Range in the session's staging memory that a client puts, and its checksum: `u64 offset, u64 bytes, u32
    /// checksum, u32 flags`.
    ///
    /// @param offset from the first byte behind the head
    /// @param bytes of the block or object
    /// @param checksum of them, and of the key of an object behind them; null where the server computes it
    public record StagedRange(
            long offset, long bytes, @Nullable Integer checksum) {

        public BodyWriter write(BodyWriter to) {
            return ChecksumCodec.write(checksum, to.i64(offset).i64(bytes));
        }

        public static StagedRange read(BodyReader from) throws ProtocolException {
            long offset = from.nonNegativeLong("offset");
            long bytes = from.nonNegativeLong("bytes");
            return new StagedRange(offset, bytes, ChecksumCodec.read(from));
        }
    }

    /// Address of a store's slots for one-sided reads over a fabric; reply to FABRIC: `u64 base, u64 bytes, u32
    /// address bytes, u32 key bytes, address, key`.
    ///
    /// @param base address of the first slot in the server's process
    /// @param bytes of all slots
    /// @param address of the process that serves them, as UCX packs it
    /// @param key to them, as UCX packs it: a process that has it can read all that is in them
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record FabricDescriptor(long base, long bytes, byte[] address, byte[] key) {

        /// Far more than UCX packs on any machine.
        private static final int MAX_BYTES = 1 << 16;

        public void write(BodyWriter to) {
            to.i64(base).i64(bytes).i32(address.length).i32(key.length);
            to.bytes(address).bytes(key);
        }

        public static FabricDescriptor read(BodyReader from) throws ProtocolException {
            long base = from.i64("base");
            long bytes = from.nonNegativeLong("bytes");
            int addressBytes = length(from, "address bytes");
            int keyBytes = length(from, "key bytes");
            return new FabricDescriptor(base, bytes, from.bytes("address", addressBytes), from.bytes("key", keyBytes));
        }

        private static int length(BodyReader from, String field) throws ProtocolException {
            int length = from.count(field);
            if (length > MAX_BYTES) {
                throw new ProtocolException("%s = %s; allowed: 0 to %s".formatted(field, length, MAX_BYTES));
            }
            return length;
        }
    }

    /// The checksum of bytes that a client puts: `u32 checksum, u32 flags`. Flag 1: there is none, and the
    /// server computes it of what has arrived.
    public static final class ChecksumCodec {

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
}
