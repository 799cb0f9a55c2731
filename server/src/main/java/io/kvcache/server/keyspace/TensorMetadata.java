package io.kvcache.server.keyspace;

/// What a client of `lm://` says of a tensor and gets back with it. The numbers mean something to the client only:
/// they have shifted between its releases, so nothing here looks at them.
///
/// @param shape0 first dimension, and so on
public record TensorMetadata(int fmt, int dtype, int location, int shape0, int shape1, int shape2, int shape3) {

    /// What is said of a value that came without a note: format 1, dtype 2, as LMCache's own server answers without
    /// data.
    public static final TensorMetadata NONE = new TensorMetadata(1, 2, 0, 0, 0, 0, 0);

    /// Whether both speak of the same tensor, wherever it was kept.
    public boolean isSameTensor(TensorMetadata other) {
        return fmt == other.fmt
                && dtype == other.dtype
                && shape0 == other.shape0
                && shape1 == other.shape1
                && shape2 == other.shape2
                && shape3 == other.shape3;
    }
}
