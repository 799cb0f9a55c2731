package io.kvcache.core.tier;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// A block or object to be read from a [Tier].
///
/// @param block what it is, with the checksum that its bytes must have
/// @param address where it lies
/// @param pages native memory that is filled in order, as in [Tier#write]
/// @param tag comes back with the outcome
public record TierRead(TierBlock block, long address, List<MemorySegment> pages, long tag) {

    public TierRead {
        pages = List.copyOf(pages);
    }

    /// Bytes of it.
    public int bytes() {
        return block.bytes();
    }

    /// Returns the checksum that the bytes must have.
    public int checksum() {
        return block.checksum();
    }

    /// How a read went.
    public enum Outcome {
        /// Its bytes are there, and have its checksum.
        SUCCESS,
        /// They could not be read.
        UNREADABLE,
        /// Bytes came that are not the block's.
        CORRUPT
    }
}
