package io.kvcache.tiers.disk;

import java.util.Set;

/// The region that was filled before another one. The trailer of the later region names it: regions are closed in their
/// order, and before each trailer a sync makes all earlier ones durable. So where the later trailer is found, the
/// earlier region is found as well, or its life is over, or its metadata is damaged.
///
/// @param life number of the earlier region's life; 0 when none is known
/// @param replaces whether it may hold entries that replace others, see [Durable]
record Predecessor(long life, boolean replaces) {

    static final Predecessor UNKNOWN = new Predecessor(0, true);

    /// Whether it must be there and is not found.
    ///
    /// @param over lives up to this one have ended
    /// @param found lives of the regions that were found
    boolean isMissing(long over, Set<Long> found) {
        return life > over && !found.contains(life);
    }
}
