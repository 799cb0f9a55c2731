package io.kvcache.core.tier;

/// Whether a [Tier] takes what it is asked to do.
public enum Taken {
    /// Taken: its outcome will be told.
    TAKEN,
    /// Not now; ask again. Nothing will be told.
    LATER,
    /// What lay there is gone. Nothing will be told.
    GONE,
    /// Not at all. Nothing will be told.
    REFUSED
}
