package io.kvcache.gpu.driver;

/// A place in a device's memory.
///
/// A number and nothing else. It is not a [java.lang.foreign.MemorySegment], since the CPU cannot read or write
/// there.
///
/// @param value as the device's driver has it; 0 for none
public record DeviceAddress(long value) {

    /// Returns the address this many bytes behind.
    public DeviceAddress plus(long bytes) {
        return new DeviceAddress(value + bytes);
    }

    @Override
    public String toString() {
        return "device 0x" + Long.toHexString(value);
    }
}
