package io.kvcache.core.store;

/// What became of a wish to have a block or object in host memory.
public enum LoadOutcome {
    /// It is there, and pinned as asked.
    RESIDENT,
    /// It has a slot now: whoever asked reads it, and tells how that went.
    STARTED,
    /// Somebody else is filling its slot.
    JOINED,
    /// It is not known.
    NOT_FOUND,
    /// No slot is to be had.
    NO_ROOM;

    /// Whether it is or will be there.
    public boolean isAvailable() {
        return this == RESIDENT || this == STARTED || this == JOINED;
    }
}
