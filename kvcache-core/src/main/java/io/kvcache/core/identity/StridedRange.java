package io.kvcache.core.identity;

/// Equal pieces at equal distances inside a block: piece `i` is `[offset + i·strideBytes, … + pieceBytes)`.
///
/// Pieces do not touch, and one piece has its own length as its stride, so that equal ranges are equal records.
public record StridedRange(long offset, long pieceBytes, long strideBytes, int pieces) {

    private static final ValueRange PIECES = new ValueRange("pieces", 1, Integer.MAX_VALUE);

    public StridedRange {
        new ByteRange(offset, pieceBytes);
        PIECES.check(pieces);
        ValueRange stride = pieces == 1
                ? new ValueRange("strideBytes of one piece", pieceBytes, pieceBytes)
                : new ValueRange("strideBytes", pieceBytes + 1, BlockShape.MAX_BYTES);
        stride.check(strideBytes);
    }

    /// The range with pieces that touch joined into one.
    static StridedRange coalesced(long offset, long pieceBytes, long strideBytes, int pieces) {
        boolean contiguous = pieces == 1 || strideBytes == pieceBytes;
        return contiguous
                ? new StridedRange(offset, pieceBytes * pieces, pieceBytes * pieces, 1)
                : new StridedRange(offset, pieceBytes, strideBytes, pieces);
    }

    /// Returns whether one copy moves the whole range.
    public boolean isContiguous() {
        return pieces == 1;
    }

    /// Bytes in all pieces together, gaps not counted.
    public long bytes() {
        return pieceBytes * pieces;
    }

    /// The bytes of piece `index`, counted from 0.
    public ByteRange piece(int index) {
        return new ByteRange(offset + ValueRange.checkIndex("piece", index, pieces) * strideBytes, pieceBytes);
    }
}
