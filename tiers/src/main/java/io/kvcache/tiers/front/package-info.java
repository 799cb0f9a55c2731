/// A faster tier in front of a disk: what is written to the disk is there as well while there is room, and is
/// read from there. It promises nothing; all promises are the disk's.
///
/// [io.kvcache.tiers.front.CachedDiskTier] is the two as one [io.kvcache.core.tier.Tier].
///
/// May import `io.kvcache.core`.
@NullMarked
package io.kvcache.tiers.front;

import org.jspecify.annotations.NullMarked;
