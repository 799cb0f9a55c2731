package io.kvcache.core.policy;

/// The facts that a policy may know of a record, independent of the record pool.
///
/// The store answers from its record pool; the trace replay from plain arrays.
///
/// **Threads.** Called by the policy's single writer only.
public interface RecordView {

    /// No record: the parent of a first block.
    int NONE = -1;

    /// Number of records there can be; record numbers run from 0 to here, exclusive.
    int capacity();

    /// The record of the block before this one in its chain, or [#NONE].
    int parent(int record);

    /// Blocks before this one in its chain, counted from 0.
    int depth(int record);

    /// How much of its prompt was new when this block came, as [NoveltyClass] has it.
    default int noveltyClass(int record) {
        return NoveltyClass.ofSingleBlock(depth(record));
    }

    /// Children that are resident in the policy's tier. A record with none is a leaf, and only leaves may be
    /// evicted.
    int residentChildren(int record);

    /// Bytes that evicting this record frees.
    long bytes(int record);

    /// Returns whether a slower tier has the record too.
    default boolean hasCopy(int record) {
        return false;
    }

    /// Stable 64-bit fingerprint of the record's key, the same after an eviction and a return.
    long fingerprint(int record);
}
