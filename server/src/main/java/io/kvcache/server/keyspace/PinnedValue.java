package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import io.kvcache.core.SegmentVisitor;
import io.kvcache.server.quota.ByteBudget;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A value that is held in place until it is closed.
///
/// **Ownership.** The receiver closes it, once.
public final class PinnedValue implements AutoCloseable {

    private final ObjectView view;
    private final long expiresAtMillis;
    private @Nullable ByteBudget outgoing;

    private PinnedValue(ObjectView view, long expiresAtMillis) {
        this.view = view;
        this.expiresAtMillis = expiresAtMillis;
    }

    /// Takes over a view, or closes it and answers null when it holds no value of ours.
    static @Nullable PinnedValue of(ObjectView view) {
        long expiresAtMillis = ValueTrailer.expiresAtMillis(view);
        if (expiresAtMillis == ValueTrailer.NO_TRAILER) {
            view.close();
            return null;
        }
        return new PinnedValue(view, expiresAtMillis);
    }

    /// Has it count as on its way out until it is closed, or answers false when too much is.
    boolean startSending(ByteBudget way) {
        if (!way.tryAcquire(view.bytes())) {
            return false;
        }
        outgoing = way;
        return true;
    }

    /// Size of the value; may be 0.
    public long bytes() {
        return view.bytes() - ValueTrailer.BYTES;
    }

    /// A checksum of the value with its key and what its writer said of it, which was computed when it was written or
    /// is
    /// computed now. Another value of the key nearly always has another.
    public int checksum() {
        return view.checksum();
    }

    /// Shows where a range of the value lies, in order and read-only.
    ///
    /// @throws IndexOutOfBoundsException when the range does not lie in the value
    public void visit(long offset, long length, SegmentVisitor each) {
        Objects.checkFromIndexSize(offset, length, bytes());
        view.visit(offset, length, each);
    }

    /// The tensor metadata that its writer sent.
    public TensorMetadata tensorMetadata() {
        return ValueTrailer.tensorMetadata(view);
    }

    /// Returns whether a view is of this very value, and not of one that came after it.
    boolean isSameValue(ObjectView other) {
        return address(view) == address(other); // the place is not reused while both hold it
    }

    private static long address(ObjectView view) {
        long[] first = new long[1];
        view.visit(0, 1, (memory, from, bytes) -> first[0] = memory.address() + from);
        return first[0];
    }

    long expiresAtMillis() {
        return expiresAtMillis;
    }

    /// The number at which it was written, 0 for unknown; see [HashSlotOwnership].
    long writeNumber() {
        return ValueTrailer.writeNumber(view);
    }

    @Override
    public void close() {
        ByteBudget way = outgoing;
        if (way != null) {
            outgoing = null;
            way.release(view.bytes());
        }
        view.close();
    }

    /// Tensor metadata that a client of `lm://` sends and gets back. The numbers mean something to the client
    /// only: they have shifted between its releases, so nothing here looks at them.
    ///
    /// @param shape0 first dimension, and so on
    public record TensorMetadata(int fmt, int dtype, int location, int shape0, int shape1, int shape2, int shape3) {

        /// Metadata of a value that came without any: format 1, dtype 2, as LMCache's own server answers
        /// without data.
        public static final TensorMetadata NONE = new TensorMetadata(1, 2, 0, 0, 0, 0, 0);

        /// Writes the seven numbers, in their order.
        ///
        /// @return the buffer
        public ByteBuffer writeTo(ByteBuffer out) {
            return out.putInt(fmt)
                    .putInt(dtype)
                    .putInt(location)
                    .putInt(shape0)
                    .putInt(shape1)
                    .putInt(shape2)
                    .putInt(shape3);
        }

        /// Returns whether both speak of the same tensor, wherever it was kept.
        public boolean isSameTensor(TensorMetadata other) {
            return fmt == other.fmt
                    && dtype == other.dtype
                    && shape0 == other.shape0
                    && shape1 == other.shape1
                    && shape2 == other.shape2
                    && shape3 == other.shape3;
        }
    }
}
