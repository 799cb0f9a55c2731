/// Code that runs on the device: [io.kvcache.gpu.kernel.GpuKernels] loads PTX text. It is compiled from
/// `src/main/cuda/kernels.cu` and checked in, so that users need only the driver.
///
/// May import `io.kvcache.gpu.driver`.
@NullMarked
package io.kvcache.gpu.kernel;

import org.jspecify.annotations.NullMarked;
