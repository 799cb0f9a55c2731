/// The DEVICE tier under the contract of all tiers, over the device in Java and over the stand-in for
/// NVIDIA's driver.
@NullMarked
package io.kvcache.gpu.tier;

import org.jspecify.annotations.NullMarked;
