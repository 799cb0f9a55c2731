package io.kvcache.gpu.driver;

/// A place in a device's memory.
///
/// A number and nothing else: it cannot be read or written by the CPU, and is no
/// [java.lang.foreign.MemorySegment], so that nobody tries.
///
/// @param value as the device's driver has it; 0 is no place
public record DeviceAddress(long value) {

    /// The place so many bytes further on.
    public DeviceAddress plus(long bytes) {
        return new DeviceAddress(value + bytes);
    }

    @Override
    public String toString() {
        return "device 0x" + Long.toHexString(value);
    }
}
