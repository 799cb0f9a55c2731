/// Hot blocks in device memory.
///
/// `driver` is a device as the bridge sees it, `host` one in plain Java, `cuda` one of NVIDIA's, `tier`
/// what a store does with any of them.
///
/// May import `io.kvcache.core`; never `io.kvcache.tiers` or `io.kvcache.transport`. JCuda is used
/// nowhere else.
@NullMarked
package io.kvcache.gpu;

import org.jspecify.annotations.NullMarked;
