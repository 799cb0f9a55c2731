package io.kvcache.tiers.device;

import java.lang.foreign.MemorySegment;

/// Makes [BlockDevice]s in memory, which carry out operations in the order they were queued, and only when
/// polled, so that the same calls always have the same effect. They never wait and never fail.
///
/// **Ownership.** The memory is the caller's and outlives the device; the next device over it reads what this
/// one wrote. For the rest, as [BlockDevice].
public final class MemoryDevice {

    private MemoryDevice() {}

    /// A device that holds its bytes in `storage`.
    ///
    /// @param storage a multiple of [BlockDevice#ALIGNMENT] bytes, on the heap or off it, zeroes where never
    ///     written
    /// @param depth operations on their way at a time, 1 to [BlockDevice#MAX_DEPTH]
    public static BlockDevice create(MemorySegment storage, int depth) {
        SpanValidator spanValidator = new SpanValidator(storage.byteSize());
        IoBackend ioBackend = new MemoryIoBackend(storage, new IoRequestPool(depth));
        return new AsyncDevice("memory device", spanValidator, ioBackend, new AsyncDevice.CloseOptions(1, () -> {}));
    }
}
