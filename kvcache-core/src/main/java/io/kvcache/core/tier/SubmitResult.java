package io.kvcache.core.tier;

/// Answer of a [Tier] to a request.
public enum SubmitResult {
    /// Accepted: the listener will be called with the outcome.
    ACCEPTED,
    /// Not accepted now: ask again. The listener will not be called.
    RETRY,
    /// The bytes at the address are gone. The listener will not be called.
    GONE,
    /// Not accepted at all. The listener will not be called.
    REJECTED
}
