package io.kvcache.core.tier;

import java.lang.foreign.MemorySegment;

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

    /// Begins to open the tier.
    ///
    /// @param listener the store
    /// @param slots the store's host memory, which blocks travel from and to; it outlives the tier
    /// @throws RuntimeException when it cannot be, with the cause
    Tier open(TierListener listener, MemorySegment slots);
}
