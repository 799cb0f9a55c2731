package io.kvcache.core.identity;

/// A block's share for one layer group and one tensor-parallel rank.
///
/// [PartKind#FULL] parts of a namespace have the same `blockTokens`. A window or state may have a multiple of it:
/// then an entry belongs to several blocks.
///
/// @param group layer group, 0 to 255; layers of one group have the same kind
/// @param rank tensor-parallel rank, 0 to 1,023; 0 where all ranks hold the same (multi-head latent attention)
/// @param kind what a match needs of this part
/// @param window tokens a window covers, 1 to 16,777,216 for [PartKind#WINDOW], 0 for the others
/// @param shape the array it is
/// @param rotation how its K rows have been rotated
public record Part(int group, int rank, PartKind kind, int window, BlockShape shape, RopeOrigin rotation) {

    private static final ValueRange GROUP = new ValueRange("group", 0, 255);
    private static final ValueRange RANK = new ValueRange("rank", 0, 1023);
    private static final ValueRange BYTES = new ValueRange("block bytes", 1, BlockShape.MAX_BYTES);
    private static final ValueRange WINDOW = new ValueRange("window of a WINDOW part", 1, 1 << 24);

    public Part {
        GROUP.check(group);
        RANK.check(rank);
        switch (kind) {
            case WINDOW -> WINDOW.check(window);
            case FULL, STATE -> new ValueRange("window of a " + kind + " part", 0, 0).check(window);
        }
        BYTES.check(bytes(kind, shape));
    }

    /// The only part of a model that is not split: full attention, rotated from position 0.
    public static Part full(BlockShape shape) {
        return full(0, 0, shape);
    }

    /// Full attention, rotated from position 0.
    public static Part full(int group, int rank, BlockShape shape) {
        return new Part(group, rank, PartKind.FULL, 0, shape, RopeOrigin.FROM_ZERO);
    }

    /// Bytes of this part in one block. A [PartKind#STATE] part keeps one token row however long the block is:
    /// its shape's `blockTokens` says only how often a state is kept.
    public long bytes() {
        return bytes(kind, shape);
    }

    private static long bytes(PartKind kind, BlockShape shape) {
        return switch (kind) {
            case FULL, WINDOW -> shape.bytes();
            case STATE -> shape.tokenBytes();
        };
    }
}
