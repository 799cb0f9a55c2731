package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.TierRead;

/// Hears what became of what a [DiskLog] was asked to do.
///
/// **Threads.** Called by the log's thread, within a tick. A sink may ask the log for anything but a tick.
public interface DiskLogCompletions {

    /// A namespace has its number, which survives a crash; its entries may be appended. Never told when
    /// the log ends before.
    void onNamespaceRegistered(Namespace namespace, int number);

    /// An append has ended, and its memory is the caller's again.
    ///
    /// @param address where the block can be read, or [LogAddress#NONE] when it was not written
    void onAppended(long tag, long address);

    /// A read has ended, and its memory is the caller's again; unless the outcome is good its bytes are
    /// undefined.
    void onRead(long tag, TierRead.Outcome outcome);

    /// A flush has ended.
    ///
    /// @param durable whether the promise of [DiskLog#flush] holds
    void onFlushed(long tag, boolean durable);
}
