package io.kvcache.core.tier;

import io.kvcache.core.identity.Namespace;

/// The store behind a [Tier], as the tier sees it.
///
/// **Threads.** Called by the tier's thread, within a tick. It may ask the tier for anything but a tick.
public interface TierListener {

    /// The namespace that a [TierBlock] speaks of.
    Namespace namespace(int namespaceId);

    /// The number of a namespace that the tier has blocks of; registers it when it is new.
    ///
    /// @return -1 when the store does not take it
    int namespaceId(Namespace namespace);

    /// A write or burial has ended, and its memory is the caller's again.
    ///
    /// @param address where it can be read, or -1 when it was not written
    void onWritten(long tag, long address);

    /// A read has ended, and its memory is the caller's again.
    void onRead(long tag, TierRead.Outcome outcome);

    /// A flush has ended.
    void onFlushed(long tag, boolean durable);

    /// A block or object was found that was written before; of several with one key the first told counts. It can
    /// be read at once.
    void onRecovered(TierBlock block, long address);

    /// Drops the key: from now on, copies reported by [#onRecovered] for it do not count.
    void onTombstone(long keyHi, long keyLo);

    /// All that was found has been told.
    void onRecoveryEnded();

    /// A span is about to be reclaimed: what is not kept is gone when this returns.
    void onReclaim(ReclaimCandidates offer);

    /// A block was moved to another address.
    void onMoved(TierBlock block, long from, long to);

    /// A block could not be kept.
    void onLost(TierBlock block, long address);

    /// A block was used where it lies, by a reader that did not ask the store. Of a path all blocks are told,
    /// deepest first.
    default void onUsed(TierBlock block, long address) {}

    /// How much a block is wanted: uses that its policy expects for the time that it is kept, so the greater the
    /// rather it stays. Only good for comparing blocks that are asked for together.
    ///
    /// @return [Double#NaN] when the store's policy has no such measure, 0 for a block that it does not know
    default double score(long keyHi, long keyLo) {
        return Double.NaN;
    }
}
