package io.kvcache.core;

/// The outcome of a request for room.
public enum PutOutcome {
    /// There is room: fill it, then seal.
    RESERVED,
    /// The block is here already: nothing to write.
    PRESENT,
    /// Another writer is filling it: nothing to write, and it will be findable when that writer seals.
    BUSY,
    /// The block before it, or the one that an entry of a window or state belongs to, is neither here nor being
    /// written: this one could never be found.
    NO_PARENT,
    /// Another namespace has a block under the key: nothing to write until that block is gone. Keys made from
    /// tokens and by engines never collide across namespaces, so one of the two callers used a key that is not its
    /// own.
    FOREIGN,
    /// No room: everything is pinned or being written, or a remote store cannot be reached.
    NO_ROOM,
    /// The eviction policy expects less of the block than of any that would have to go for it. Put it again when
    /// it is computed the next time: by then the store knows that it returns.
    DECLINED;

    /// Returns whether the block after this one may be put: this one is resident, or will be.
    public boolean allowsNextBlock() {
        return this == RESERVED || this == PRESENT || this == BUSY;
    }
}
