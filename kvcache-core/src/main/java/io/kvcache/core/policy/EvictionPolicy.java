package io.kvcache.core.policy;

import io.kvcache.core.policy.LabelClasses.BlockLabel;
import java.util.function.IntPredicate;

/// Chooses the next victim among the resident records of one slot class in one tier.
///
/// The life of a record, as reported to the policy: [#admit] or [#onPrefetched], then any number of [#touch],
/// until [#evict] returns it, or [#onEvicted] or [#forget] reports that it left. Records form trees, and only
/// leaves are evicted: a victim has no resident child. When a victim's departure makes its parent a leaf, the
/// store calls [#onBecameLeaf] for the parent.
///
/// **Touch order.** A request touches its blocks from the deepest to the first, so that a tail is always older
/// than its head. A policy for which touching the deepest block alone is enough (it lets the parent inherit on
/// eviction) answers `false` to [#touchesAncestors()] and is spared the walk.
///
/// **Threads.** One writer, the holder of the store's lock. Nothing here blocks or allocates per call, apart from
/// growing arrays.
public interface EvictionPolicy {

    /// No victim.
    int NONE = -1;

    /// Reuse classes that [#label] takes, the one for no class included.
    int REUSE_CLASSES = BlockLabel.REUSE_CLASSES;

    /// Largest value that [#setWeight] takes.
    int MAX_HALVINGS = BlockLabel.MAX_HALVINGS;

    /// The record has become resident. It is a leaf now; its parent, when resident, is one no longer.
    void admit(int record);

    /// The record has become resident because the store guesses that it will be used: no caller has
    /// asked for it yet. The first [#touch] is then its first use, and when it leaves before that,
    /// what is remembered of it stays as it was. Otherwise as [#admit], and just that for a policy
    /// that cannot separate two uses.
    default void onPrefetched(int record) {
        admit(record);
    }

    /// The record was used by a request.
    void touch(int record);

    /// Returns whether a request must touch every block of its path, deepest first, or the deepest alone.
    boolean touchesAncestors();

    /// The record lost its last resident child and is a leaf again.
    void onBecameLeaf(int record);

    /// The record was dropped by its owner, or another one has taken its place.
    void forget(int record);

    /// The record had to go, though it was not this policy that chose it: what is remembered of victims
    /// counts for it.
    default void onEvicted(int record) {
        forget(record);
    }

    /// The record is worth nothing any more: a next victim, if it is a leaf.
    void demote(int record);

    /// A request that has used the record went on with one below it, though it did not touch that one
    /// first.
    default void onContinued(int record) {}

    /// A request that will use the record is known to come.
    ///
    /// Policies that look ahead ([PolicyKind#usesAnnouncements]) get a call for every resident block of that
    /// request, and by [#announce] for all its blocks; the others get one for its deepest resident block alone.
    default void expect(int record) {}

    /// A request that will use a block is known to come.
    ///
    /// @param fingerprint of the block, which may be resident or not
    default void announce(long fingerprint) {}

    /// The record is of requests of this class, which says how soon it is used again.
    ///
    /// @param reuseClass 0 for none, below [#REUSE_CLASSES]
    default void label(int record, int reuseClass) {}

    /// How much of what the record holds matters to its reader.
    ///
    /// @param halvings 0 for all of it, 1 for half, up to [#MAX_HALVINGS]
    default void setWeight(int record, int halvings) {}

    /// A slower tier has got a copy of the record, or has lost it: [RecordView#hasCopy].
    default void onCopyChanged(int record) {}

    /// A record that is not resident was used where else it lies.
    default void onUsedElsewhere(int record) {}

    /// Returns whether a new block is wanted more than the likeliest victim. Asked for the first new block of a
    /// request when there is no room but a victim's.
    ///
    /// @param fingerprint of the block, which is not resident
    /// @param novelty as [NoveltyClass] has it
    default boolean admits(long fingerprint, int novelty) {
        return true;
    }

    /// A block was used that is not resident, and that is not to be, as [#admits] said for it or for one before
    /// it. The blocks of a request come from the deepest to the first.
    ///
    /// @param novelty as [NoveltyClass] has it
    /// @param last whether the request ended there
    default void onDeclined(long fingerprint, int novelty, boolean last) {}

    /// Returns whether the policy remembers anything of a block that is not resident.
    default boolean hasGhost(long fingerprint) {
        return false;
    }

    /// How much a record is wanted, resident or not: uses expected for the time that it is kept, or [Double#NaN]
    /// for a policy that does not know. Good for comparing records at one moment.
    default double score(int record) {
        return Double.NaN;
    }

    /// Returns the score of the likeliest next victim by the same measure, 0 when there is none, or [Double#NaN]
    /// for a policy without scores.
    default double lowestScore() {
        return Double.NaN;
    }

    /// Chooses a victim, claims it and forgets it.
    ///
    /// @param claim tries to claim a record for eviction and answers whether it did; a pinned record refuses, and
    ///     counts as used at this moment
    /// @return the claimed record, or [#NONE] when none could be claimed within the policy's bound on inspection
    int evict(IntPredicate claim);

    /// Records that are resident under this policy.
    int size();

    /// The policy's clock reading of when its likeliest next victim was last used, or `Long.MAX_VALUE` when it
    /// holds none. Lets the store compare slot classes; a policy without recency answers its insertion order.
    long victimLastUse();

    /// Returns about how often a resident record was used, or -1 for a policy that does not count uses.
    default int uses(int record) {
        return -1;
    }

    /// Returns the policy's clock reading of when a resident record was last used, or -1 for a policy without
    /// recency. A policy that does not touch ancestors may have noted the use at a record below.
    default long lastUse(int record) {
        return -1;
    }

    /// Bytes that this instance keeps beside the arrays it shares with the others.
    default long heapBytes() {
        return 0;
    }

    /// Returns the comparison with plain LRU of a policy that learns; an empty report for the others.
    default LruFallback.Report fallbackReport() {
        return LruFallback.Report.EMPTY;
    }
}
