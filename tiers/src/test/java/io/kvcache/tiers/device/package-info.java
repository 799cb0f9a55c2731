/// Contract of every [io.kvcache.tiers.device.BlockDevice], as a suite that an implementation's tests extend, and
/// a device with faults for simulations.
///
/// Published in the test-jar.
@NullMarked
package io.kvcache.tiers.device;

import org.jspecify.annotations.NullMarked;
