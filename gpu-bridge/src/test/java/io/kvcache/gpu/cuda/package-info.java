/// NVIDIA's driver under the contract of all devices, by a stand-in that runs on the CPU or by a real
/// device.
@NullMarked
package io.kvcache.gpu.cuda;

import org.jspecify.annotations.NullMarked;
