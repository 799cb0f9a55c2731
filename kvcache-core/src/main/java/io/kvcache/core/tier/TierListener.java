package io.kvcache.core.tier;

import io.kvcache.core.identity.Namespace;

/// The store behind a [Tier], as the tier sees it.
///
/// **Threads.** Called by the tier's thread, within a tick. It may ask the tier for anything but a tick.
public interface TierListener {

    /// Returns the namespace that a [TierBlock] refers to.
    Namespace namespace(int namespaceId);

    /// Returns the number of a namespace that the tier has blocks of; registers it when it is new.
    ///
    /// @return -1 when the store does not take it
    int namespaceId(Namespace namespace);

    /// A write or tombstone has ended, and its memory is the caller's again.
    ///
    /// @param address where it can be read, or -1 when it was not written
    void onWritten(long tag, long address);

    /// A read has ended, and its memory is the caller's again.
    void onRead(long tag, TierRead.Outcome outcome);

    /// A flush has ended.
    void onFlushed(long tag, boolean durable);

    /// A block or object was found that was written before. Of several with one key the first reported counts; a
    /// block's copy that was written since the opening gives way to it. It can be read at once.
    void onRecovered(TierBlock block, long address);

    /// Drops the key: from now on, copies reported by [#onRecovered] for it do not count.
    void onTombstone(long keyHi, long keyLo);

    /// All contents found have been reported.
    void onRecoveryEnded();

    /// A span is about to be reclaimed: blocks not kept are gone when this returns.
    void onReclaim(ReclaimCandidates offer);

    /// A block was moved to another address.
    void onMoved(TierBlock block, long from, long to);

    /// A block could not be kept.
    void onLost(TierBlock block, long address);

    /// A block was used where it lies, by a reader that did not ask the store. All blocks of a path are reported,
    /// deepest first.
    default void onUsed(TierBlock block, long address) {}

    /// Returns the uses that the policy expects for the time that a block is kept: the more, the rather it stays.
    /// Compare it only among blocks that are scored together.
    ///
    /// @return [Double#NaN] when the store's policy has no such measure, 0 for a block that it does not know
    default double score(long keyHi, long keyLo) {
        return Double.NaN;
    }
}
