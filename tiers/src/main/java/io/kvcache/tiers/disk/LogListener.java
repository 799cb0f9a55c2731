package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierRead;

/// The index over a [DiskLog], as the log sees it: it knows what lies where, and hears what became of each request.
/// The log keeps no index of its own.
///
/// **Threads.** Called by the log's thread, within a tick. It may ask the log for anything but a tick.
public interface LogListener {

    /// An entry was found at opening. Later ones come first, so of several with one key the first told is the
    /// one that counts. A child may come before its parent, and the parent may never come.
    ///
    /// It can be read at once. Entries that were appended meanwhile are later than any that is told here.
    void onRecovered(DiskEntry entry, long address);

    /// A tombstone was found at opening: of the entries that it replaces ([DiskEntry#replaces]) those that are
    /// told after it, by [#onRecovered], do not count. Those that were told before it, or appended meanwhile, are
    /// later, and do.
    void onTombstone(DiskEntry tombstone);

    /// All that was found has been told.
    void onRecoveryEnded();

    /// A region is about to be reclaimed: says which of its entries to keep, by [ReclaimCandidates#keep]. The
    /// others are gone when this returns; each kept one stays readable where it is until it is [#onMoved] or
    /// [#onLost].
    void onReclaim(ReclaimCandidates offer);

    /// A kept entry was written elsewhere. It stays readable at its old place only until this returns. When
    /// its key was appended anew or buried meanwhile, neither place counts.
    void onMoved(DiskEntry entry, long from, long to);

    /// A kept entry could not be read, or not be written again, or was replaced before it was; its old place is
    /// stale from now on.
    void onLost(DiskEntry entry, long address);

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
