/// Raw storage: spans of bytes at offsets, read and written asynchronously, with failures as values.
///
/// [io.kvcache.tiers.device.BlockDevice] is the seam between the disk tier and the machine.
/// [io.kvcache.tiers.device.FileDevice] is a preallocated file, through io_uring or through a few threads;
/// [io.kvcache.tiers.device.MemoryDevice] is the deterministic one for simulations and tests, and
/// [io.kvcache.tiers.device.ForwardingDevice] the base of devices that change single calls.
///
/// May import `io.kvcache.tiers.os` and the JDK only.
@NullMarked
package io.kvcache.tiers.device;

import org.jspecify.annotations.NullMarked;
