package io.kvcache.core;

/// What became of a request for room.
public enum PutOutcome {
    /// There is room: fill it, then seal.
    RESERVED,
    /// The block is here already: nothing to write.
    PRESENT,
    /// Another writer is filling it: nothing to write, and it will be findable when that writer seals.
    BUSY,
    /// The block before it is neither here nor being written: this one could never be found.
    NO_PARENT,
    /// Another namespace has something under the key: nothing to write, now or later, until that is gone. Keys
    /// of tokens and of engines never meet those of another namespace, so the caller has named a block by a key
    /// that is not its own, or another one has.
    FOREIGN,
    /// There is no room to be had: everything is pinned or being written, or the store is elsewhere and cannot be
    /// reached.
    NO_ROOM;

    /// Whether the block after this one may be put: this one is here, or will be.
    public boolean allowsNextBlock() {
        return this == RESERVED || this == PRESENT || this == BUSY;
    }
}
