package io.kvcache.core.tier;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// Source of a [Tier] for a store, at its start and again after the tier failed.
///
/// **Threads.** [#open] by the thread that then drives the tier; the rest by any.
public interface TierSource {

    /// Returns the name of the tier, open or not.
    String name();

    /// Bytes of blocks, each in whole pages, that may be alive in it.
    long maxLiveBytes();

    /// The largest block that it takes.
    long maxBlockBytes();

    /// Likewise in several parts, for a store that needs one for each of its disks.
    ///
    /// @param parts 1 and up
    /// @return sources of the parts, to be opened in place of this one
    /// @throws IllegalArgumentException when parts would be too small
    List<TierSource> split(int parts);

    /// Begins to open the tier.
    ///
    /// @param listener the store
    /// @param slots the store's host memory, which blocks travel from and to; it outlives the tier
    /// @throws RuntimeException when it cannot be, with the cause
    Tier open(TierListener listener, MemorySegment slots);
}
