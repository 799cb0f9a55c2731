/// Hot blocks in device memory. Nothing lives here yet: the device drivers (JCuda, FFM to libcuda, and a plain-Java
/// stand-in) and the DEVICE tier arrive with the GPU bridge.
///
/// May import `io.kvcache.core`; never `io.kvcache.tiers` or `io.kvcache.transport`. JCuda is used nowhere else.
@NullMarked
package io.kvcache.gpu;

import org.jspecify.annotations.NullMarked;
