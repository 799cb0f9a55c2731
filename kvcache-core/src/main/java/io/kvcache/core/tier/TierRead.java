package io.kvcache.core.tier;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// A block or object to be read from a [Tier].
///
/// @param place where it lies
/// @param bytes of it
/// @param checksum that they must have
/// @param pages native memory that is filled in order, as in [Tier#write]
/// @param tag comes back with the outcome
public record TierRead(long place, int bytes, int checksum, List<MemorySegment> pages, long tag) {

    public TierRead {
        pages = List.copyOf(pages);
    }

    /// How a read went.
    public enum Outcome {
        /// Its bytes are there, and have its checksum.
        GOOD,
        /// They could not be read.
        UNREADABLE,
        /// Bytes came that are not the block's.
        CORRUPT
    }
}
