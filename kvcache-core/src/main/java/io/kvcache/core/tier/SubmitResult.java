package io.kvcache.core.tier;

/// Whether a [Tier] takes what it is asked to do.
public enum SubmitResult {
    /// Taken: its outcome will be told.
    ACCEPTED,
    /// Not now; ask again. Nothing will be told.
    RETRY,
    /// What lay there is gone. Nothing will be told.
    GONE,
    /// Not at all. Nothing will be told.
    REJECTED
}
