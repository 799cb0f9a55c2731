/// Hot blocks in device memory.
///
/// `driver` is a device as the bridge sees it, `host` one in plain Java, `cuda` one of NVIDIA's. `tier`
/// is what a store does with any of them, `paging` how blocks get into an engine's own pool, `growth`
/// memory that grows where it is, `kernel` what a device computes.
///
/// May import `io.kvcache.core`; never `io.kvcache.tiers` or `io.kvcache.transport`. JCuda is used
/// nowhere else.
@NullMarked
package io.kvcache.gpu;

import org.jspecify.annotations.NullMarked;
