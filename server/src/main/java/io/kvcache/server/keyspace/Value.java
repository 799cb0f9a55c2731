package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A value that is held in place until it is closed.
///
/// **Ownership.** Who got it closes it, once.
public final class Value implements AutoCloseable {

    private final ObjectView view;
    private final Span all;
    private final Trailer trailer;

    private Value(ObjectView view, Span all, Trailer trailer) {
        this.view = view;
        this.all = all;
        this.trailer = trailer;
    }

    /// Takes over a view, or closes it and answers null when it holds no value of ours.
    static @Nullable Value of(ObjectView view) {
        Span all = Span.of(view.pieces());
        Trailer trailer = null;
        if (all.bytes() >= Trailer.BYTES) {
            byte[] end = new byte[Trailer.BYTES];
            all.slice(all.bytes() - Trailer.BYTES, Trailer.BYTES).copyTo(MemorySegment.ofArray(end));
            trailer = Trailer.decode(end);
        }
        if (trailer == null) {
            view.close();
            return null;
        }
        return new Value(view, all, trailer);
    }

    /// Size of the value; may be 0.
    public long bytes() {
        return all.bytes() - Trailer.BYTES;
    }

    /// The memory of a range of the value, in order, read-only, in place.
    ///
    /// @throws IndexOutOfBoundsException when the range does not lie in the value
    public List<MemorySegment> pieces(long offset, long length) {
        Objects.checkFromIndexSize(offset, length, bytes());
        return length == 0 ? List.of() : all.slice(offset, length).pieces();
    }

    /// What its writer said of it.
    public TensorNote note() {
        return trailer.note();
    }

    long expiresAtMillis() {
        return trailer.expiresAtMillis();
    }

    @Override
    public void close() {
        view.close();
    }
}
