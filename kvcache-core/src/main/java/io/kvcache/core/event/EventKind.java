package io.kvcache.core.event;

/// Kind of an event on a block or object, with its cause.
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

    /// Returns whether the block is in the tier after this event.
    public boolean isAddition() {
        return enters;
    }
}
