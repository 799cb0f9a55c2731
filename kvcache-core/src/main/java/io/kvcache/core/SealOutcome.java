package io.kvcache.core;

/// Outcome of sealing the bytes that a writer has finished.
public enum SealOutcome {
    /// Findable from now on.
    SEALED,
    /// Complete, and findable as soon as the blocks before it are sealed.
    PENDING,
    /// The block, or one before it, was dropped or abandoned meanwhile, or one before it is on disk and could not be
    /// loaded; the bytes are gone.
    DROPPED
}
