package io.kvcache.core.identity;

/// How stored K rows have been rotated by position (RoPE). It keeps the blocks of two conventions apart; no store
/// rotates
/// anything, so a reader gets the rows as they were stored.
///
/// @param basePosition the position at which the first token of the sequence was rotated, or -1 where K is
///     stored before rotation
public record RopeOrigin(int basePosition) {

    // First, because the constants below are checked against it.
    private static final ValueRange BASE_POSITION = new ValueRange("basePosition", -1, Integer.MAX_VALUE);

    /// K is stored before rotation; the reader rotates it.
    public static final RopeOrigin NONE = new RopeOrigin(-1);

    /// K is rotated by the token's position in its sequence, counted from 0: what engines store by default.
    public static final RopeOrigin FROM_ZERO = new RopeOrigin(0);

    public RopeOrigin {
        BASE_POSITION.check(basePosition);
    }

    /// Returns whether K is stored rotated.
    public boolean isRotated() {
        return basePosition >= 0;
    }
}
