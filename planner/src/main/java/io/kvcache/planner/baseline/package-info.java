/// Eviction policies that others have published, to compare the store's own with. They come through the same service as
/// a stranger's would: [io.kvcache.core.policy.EvictionPolicyFactory].
@NullMarked
package io.kvcache.planner.baseline;

import org.jspecify.annotations.NullMarked;
