package io.kvcache.server.keyspace;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/// What is stored behind a value, in the same object, so that it is evicted with the value and survives with it.
///
/// Behind and not before it, so that the value keeps the alignment of its slot.
///
/// @param expiresAtMillis when the value expires, as it was written, in milliseconds since the epoch; 0 for never
/// @param note what the client says of the value
record Trailer(long expiresAtMillis, TensorNote note) {

    /// Magic, four bytes of nothing yet, expiry, the seven numbers of the note, four bytes of nothing.
    static final int BYTES = 48;

    private static final int MAGIC = 0x4b565431; // KVT1

    byte[] encode() {
        return ByteBuffer.allocate(BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(MAGIC)
                .putInt(0)
                .putLong(expiresAtMillis)
                .putInt(note.fmt())
                .putInt(note.dtype())
                .putInt(note.location())
                .putInt(note.shape0())
                .putInt(note.shape1())
                .putInt(note.shape2())
                .putInt(note.shape3())
                .putInt(0)
                .array();
    }

    /// Reads a trailer; null when these bytes are none.
    static @Nullable Trailer decode(byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.length != BYTES || in.getInt() != MAGIC) {
            return null;
        }
        in.getInt();
        return new Trailer(
                in.getLong(),
                new TensorNote(
                        in.getInt(), in.getInt(), in.getInt(), in.getInt(), in.getInt(), in.getInt(), in.getInt()));
    }
}
