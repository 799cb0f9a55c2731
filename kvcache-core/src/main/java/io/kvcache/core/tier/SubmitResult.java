package io.kvcache.core.tier;

/// Answer of a [Tier] to a request.
public enum SubmitResult {
    /// Taken: its outcome will be told.
    ACCEPTED,
    /// Not now; ask again. Nothing will be told.
    RETRY,
    /// The bytes at the address are gone. The listener will not be called.
    GONE,
    /// Not at all. Nothing will be told.
    REJECTED
}
