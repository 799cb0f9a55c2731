package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;

/// Hears what became of what a [DiskLog] was asked to do.
///
/// **Threads.** Called by the log's thread, within a tick. A sink may ask the log for anything but a tick.
public interface DiskLogSink {

    /// A namespace has its number, which survives a crash; its entries may be appended. Never told when
    /// the log ends before.
    void registered(Namespace namespace, int number);

    /// An append has ended, and its memory is the caller's again.
    ///
    /// @param place where the block can be read, or [DiskPlace#NONE] when it was not written
    void appended(long tag, long place);

    /// A read has ended, and its memory is the caller's again; unless the outcome is good its bytes are
    /// undefined.
    void read(long tag, ReadOutcome outcome);

    /// A flush has ended.
    ///
    /// @param durable whether the promise of [DiskLog#flush] holds
    void flushed(long tag, boolean durable);
}
