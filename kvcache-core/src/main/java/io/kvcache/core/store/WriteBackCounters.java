package io.kvcache.core.store;

/// What became of records that might have been written to disk. Owned by the store's lock.
final class WriteBackCounters {

    /// Taken into the queue.
    long admitted;

    /// Written, and on disk since.
    long written;

    /// Taken, and not written, or in vain.
    long notWritten;

    /// Sealed, and not worth a write yet.
    long belowThreshold;

    /// Sealed, and larger than a disk takes.
    long tooLarge;

    /// Refused because too many bytes waited.
    long queueFull;

    /// Left host memory, and no disk had them.
    long evictedUnwritten;

    /// Left while they waited to be written.
    long evictedWhileQueued;
}
