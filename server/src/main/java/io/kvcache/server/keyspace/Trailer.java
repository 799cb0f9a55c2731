package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/// What is stored behind a value, in the same object, so that it is evicted with the value and survives with it.
///
/// Behind and not before it, so that the value keeps the alignment of its slot. Few ask for all of it, so it is kept
/// as its bytes.
final class Trailer {

    /// Magic, four bytes of nothing yet, expiry, the seven numbers of the note, four bytes of nothing.
    static final int BYTES = 48;

    private static final int MAGIC = 0x4b565431; // KVT1
    private static final int EXPIRY_AT = 8;
    private static final int NOTE_AT = 16;

    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final byte[] bytes;

    private Trailer(byte[] bytes) {
        this.bytes = bytes;
    }

    /// @param expiresAtMillis when the value expires, in milliseconds since the epoch; 0 for never
    /// @param note what the client says of the value
    static Trailer of(long expiresAtMillis, TensorNote note) {
        return new Trailer(ByteBuffer.allocate(BYTES)
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
                .array());
    }

    /// Reads the trailer of an object; null when it has none.
    static @Nullable Trailer behind(ObjectView view) {
        if (view.bytes() < BYTES) {
            return null;
        }
        byte[] bytes = new byte[BYTES];
        view.copyTo(view.bytes() - BYTES, BYTES, MemorySegment.ofArray(bytes));
        return (int) INT.get(bytes, 0) == MAGIC ? new Trailer(bytes) : null;
    }

    byte[] bytes() {
        return bytes;
    }

    /// When the value expires, as it was written.
    long expiresAtMillis() {
        return (long) LONG.get(bytes, EXPIRY_AT);
    }

    TensorNote note() {
        return new TensorNote(number(0), number(1), number(2), number(3), number(4), number(5), number(6));
    }

    private int number(int index) {
        return (int) INT.get(bytes, NOTE_AT + index * Integer.BYTES);
    }

    /// Host memory that a value takes, in slots of `page` bytes at the least.
    static long storedBytes(int keyBytes, long valueBytes, long page) {
        long bytes = keyBytes + valueBytes + BYTES;
        return (bytes + page - 1) / page * page;
    }
}
