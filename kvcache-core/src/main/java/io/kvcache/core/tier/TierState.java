package io.kvcache.core.tier;

/// State of a [Tier], and so the operations that it can do.
public enum TierState {
    /// No operation yet.
    OPENING,
    /// No operation: the contents are foreign or of another format, and were left alone.
    REFUSED,
    /// All operations.
    SERVING,
    /// Reads, but not writes.
    READ_ONLY,
    /// No operation: the tier fails, or hangs.
    FAILED,
    /// No operation: the tier was stopped.
    STOPPED;

    /// Returns whether blocks can be read.
    public boolean isReadable() {
        return this == SERVING || this == READ_ONLY;
    }
}
