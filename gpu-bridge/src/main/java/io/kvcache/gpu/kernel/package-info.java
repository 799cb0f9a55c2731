/// What the bridge has a device compute: [io.kvcache.gpu.kernel.GpuKernels], over PTX text that is made of
/// `src/main/cuda/kernels.cu` and checked in, so that a user needs nothing but the driver.
///
/// May import `io.kvcache.gpu.driver`.
@NullMarked
package io.kvcache.gpu.kernel;

import org.jspecify.annotations.NullMarked;
