package io.kvcache.core.event;

/// What happened to a block or object, and why.
public enum EventKind {
    STORED(true),
    /// Gave way to another.
    EVICTED(false),
    /// Was dropped by its owner, or its chain was.
    DROPPED(false),
    /// A newer object took its key.
    REPLACED(false),
    /// Was given up because its owner's quota was full.
    QUOTA(false);

    private final boolean enters;

    EventKind(boolean enters) {
        this.enters = enters;
    }

    /// Whether the block is in the tier afterwards.
    public boolean isAddition() {
        return enters;
    }
}
