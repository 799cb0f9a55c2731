package io.kvcache.transport.wire;

/// Where a store's slots can be read one-sided over a fabric, and what FABRIC is answered by:
/// `u64 base, u64 bytes, u32 address bytes, u32 key bytes, address, key`.
///
/// @param base address of the first slot in the server's process
/// @param bytes of all slots
/// @param address of whoever serves them, as UCX packs it
/// @param key to them, as UCX packs it: who has it can read all that is in them
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
            throw new ProtocolException("%s = %d; allowed: 0 to %d".formatted(field, length, MAX_BYTES));
        }
        return length;
    }
}
