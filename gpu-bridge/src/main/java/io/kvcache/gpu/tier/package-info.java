/// The DEVICE tier: blocks in a device's memory, as the store sees any tier, and as an engine sees its
/// own.
///
/// [io.kvcache.gpu.tier.DeviceTier] takes blocks from host slots and brings them back;
/// [io.kvcache.gpu.tier.CudaTier] is what a store is built with;
/// [io.kvcache.gpu.tier.DeviceBlockTable] gives an engine the places of blocks and holds them there.
///
/// May import `io.kvcache.core`, `io.kvcache.gpu.driver` and `io.kvcache.gpu.cuda`.
@NullMarked
package io.kvcache.gpu.tier;

import org.jspecify.annotations.NullMarked;
