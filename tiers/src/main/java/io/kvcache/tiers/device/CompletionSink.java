package io.kvcache.tiers.device;

/// Who hears what became of operations.
@FunctionalInterface
public interface CompletionSink {

    /// Called once for each operation that ended, by the thread that polls. From here on its segment is the
    /// caller's again; if it was a read that is not done, its bytes are undefined.
    ///
    /// @param tag what the caller gave when it queued the operation
    void completed(long tag, IoOutcome outcome);
}
