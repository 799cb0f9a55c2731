package io.kvcache.core.tier;

import java.lang.foreign.MemorySegment;

/// A tier that reads parts of what it holds, of which it proves each alone.
public interface RangeTier {

    /// Some bytes of a block or object.
    ///
    /// @param block what it is, with the checksum of all its bytes
    /// @param address where it lies
    /// @param from its first byte that is wanted
    /// @param target as long as what is wanted, at least one byte; on the heap or off it. Native memory in whole
    ///     pages is read into without a copy where the bytes begin a page, of a coded block a chunk, and end
    ///     one or the block
    /// @param tag comes back with the outcome
    record TierRange(TierBlock block, long address, int from, MemorySegment target, long tag) {}

    /// Reads some bytes of a block or object; [TierListener#onRead] reports the outcome.
    ///
    /// @return REJECTED also for what has to be read whole
    SubmitResult readRange(TierRange range);
}
