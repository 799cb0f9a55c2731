package io.kvcache.gpu.driver;

import java.util.Objects;

/// A run of a device's memory.
///
/// @param address of its first byte
/// @param bytes of it, at least 1
public record DeviceSpan(DeviceAddress address, long bytes) {

    public DeviceSpan {
        if (bytes < 1) {
            throw new IllegalArgumentException("a device span has " + bytes + " bytes; it takes 1 and up");
        }
    }

    /// The part of it from `offset` on.
    ///
    /// @throws IndexOutOfBoundsException when it is not within
    public DeviceSpan slice(long offset, long length) {
        Objects.checkFromIndexSize(offset, length, bytes);
        return new DeviceSpan(address.plus(offset), length);
    }
}
