package io.kvcache.core.tier;

/// State of a [Tier], and so the operations that it can do.
public enum TierState {
    /// Nothing yet.
    OPENING,
    /// Nothing: what it found is not its own, or of another format, and was left alone.
    REFUSED,
    /// All of it.
    SERVING,
    /// It reads and does not write.
    READ_ONLY,
    /// Nothing: it fails, or hangs.
    FAILED,
    /// Nothing, as asked.
    STOPPED;

    /// Returns whether blocks can be read.
    public boolean isReadable() {
        return this == SERVING || this == READ_ONLY;
    }
}
