package io.kvcache.core.identity;

/// How stored K rows have been rotated by position (RoPE).
///
/// @param basePosition the position at which the first token of the sequence was rotated, or -1 where K is
///     stored before rotation
public record KeyRotation(int basePosition) {

    // First, because the constants below are checked against it.
    private static final Limit BASE_POSITION = new Limit("basePosition", -1, Integer.MAX_VALUE);

    /// K is stored before rotation; whoever reads it rotates.
    public static final KeyRotation NONE = new KeyRotation(-1);

    /// K is rotated by the token's position in its sequence, counted from 0: what engines store by default.
    public static final KeyRotation FROM_ZERO = new KeyRotation(0);

    public KeyRotation {
        BASE_POSITION.check(basePosition);
    }

    /// Whether K is stored rotated.
    public boolean rotated() {
        return basePosition >= 0;
    }
}
