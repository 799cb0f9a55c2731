/// Metadata-only replay of request traces: hit ratios of eviction policies at a capacity, beside what is possible.
///
/// The convention, for each request in turn and with no service time: count contiguous hits from the start of the
/// prompt until the first absent block; mark all its blocks used and pin them; insert the absent ones in order,
/// evicting one block per insertion when full; stop inserting when nothing is evictable; unpin. Evictable is what
/// is resident, unpinned and has no resident children.
///
/// The policies are the store's own ([io.kvcache.core.policy]); only the records are plain arrays.
@NullMarked
package io.kvcache.planner.replay;

import org.jspecify.annotations.NullMarked;
