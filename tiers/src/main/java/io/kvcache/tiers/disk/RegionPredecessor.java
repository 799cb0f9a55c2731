package io.kvcache.tiers.disk;

import java.util.Set;

/// The region that was filled before another one. The trailer of the later region names it: regions are closed in their
/// order, and before each trailer a sync makes all earlier ones durable. So where the later trailer is found, the
/// earlier region is found as well, or its life is over, or its metadata is damaged.
///
/// @param epoch number of the earlier region's life; 0 when none is known
/// @param replaces whether it may hold entries that replace others, see [DurableExtent]
record RegionPredecessor(long epoch, boolean replaces) {

    static final RegionPredecessor UNKNOWN = new RegionPredecessor(0, true);

    /// Whether it must be there and is not found.
    ///
    /// @param endedEpoch lives up to this one have ended
    /// @param found lives of the regions that were found
    boolean isMissing(long endedEpoch, Set<Long> found) {
        return epoch > endedEpoch && !found.contains(epoch);
    }
}
