package io.kvcache.tiers.disk;

/// Whether a [DiskLog] takes what it is asked to do.
public enum LogSubmitResult {
    /// Taken: its outcome will be told.
    ACCEPTED,
    /// The queue is full; ask again later. Nothing will be told.
    FULL,
    /// What lay there is gone. Nothing will be told.
    STALE,
    /// The log is in no state to do it, see [DiskLog#state]. Nothing will be told.
    REJECTED
}
