package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/// Metadata stored behind a value, in the same object, so both are evicted together and survive together.
///
/// Behind and not before it, so that the value keeps the alignment of its slot. Few ask for all of it, so it is
/// read anew for each question.
final class ValueTrailer {

    /// Magic, lower half of the write's number, expiry, the seven numbers of the note, upper half.
    static final int BYTES = 48;

    private static final int MAGIC = 0x4b565431; // KVT1
    private static final int NUMBER_LOW_OFFSET = 4;
    private static final int EXPIRY_OFFSET = 8;
    private static final int METADATA_OFFSET = 16;
    private static final int NUMBER_HIGH_OFFSET = 44;

    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    /// There is no trailer.
    static final long NO_TRAILER = Long.MIN_VALUE;

    /// Every read of a value looks at its trailer, so that leaves nothing on the heap.
    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

    private static final class Scratch {
        private final byte[] bytes = new byte[BYTES];
        private final MemorySegment segment = MemorySegment.ofArray(bytes);
    }

    private ValueTrailer() {}

    /// Its bytes.
    ///
    /// @param expiresAtMillis when the value expires, in milliseconds since the epoch; 0 for never
    /// @param note what the client says of the value
    /// @param number of the write, as [HashSlotOwnership] counts them; 0 outside of a cluster, and in older files
    static byte[] bytes(long expiresAtMillis, TensorMetadata note, long number) {
        return write(new byte[BYTES], 0, expiresAtMillis, note, number);
    }

    /// A value that never expires and of which the client says nothing, with its trailer.
    static byte[] append(byte[] value, long number) {
        return write(Arrays.copyOf(value, value.length + BYTES), value.length, 0, TensorMetadata.NONE, number);
    }

    private static byte[] write(byte[] target, int at, long expiresAtMillis, TensorMetadata note, long number) {
        ByteBuffer out = ByteBuffer.wrap(target, at, BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(MAGIC)
                .putInt((int) number)
                .putLong(expiresAtMillis);
        return note.writeTo(out).putInt((int) (number >>> Integer.SIZE)).array();
    }

    /// When the value of an object expires, as it was written; [#NO_TRAILER] when the object has no trailer.
    static long expiresAtMillis(ObjectView view) {
        if (view.bytes() < BYTES) {
            return NO_TRAILER;
        }
        byte[] bytes = read(view);
        return (int) INT.get(bytes, 0) == MAGIC ? (long) LONG.get(bytes, EXPIRY_OFFSET) : NO_TRAILER;
    }

    /// Returns the number of the write of an object that has a trailer.
    static long writeNumber(ObjectView view) {
        byte[] of = read(view);
        long low = Integer.toUnsignedLong((int) INT.get(of, NUMBER_LOW_OFFSET));
        return (long) (int) INT.get(of, NUMBER_HIGH_OFFSET) << Integer.SIZE | low;
    }

    /// Returns the client's metadata of an object that has a trailer.
    static TensorMetadata tensorMetadata(ObjectView view) {
        byte[] of = read(view);
        return new TensorMetadata(
                number(of, 0),
                number(of, 1),
                number(of, 2),
                number(of, 3),
                number(of, 4),
                number(of, 5),
                number(of, 6));
    }

    /// Good until the thread reads another.
    private static byte[] read(ObjectView view) {
        Scratch scratch = SCRATCH.get();
        view.copyTo(view.bytes() - BYTES, BYTES, scratch.segment);
        return scratch.bytes;
    }

    private static int number(byte[] bytes, int index) {
        return (int) INT.get(bytes, METADATA_OFFSET + index * Integer.BYTES);
    }

    /// Host memory that a value takes, in slots of `page` bytes at the least.
    static long storedBytes(int keyBytes, long valueBytes, long page) {
        long bytes = keyBytes + valueBytes + BYTES;
        return (bytes + page - 1) / page * page;
    }
}
