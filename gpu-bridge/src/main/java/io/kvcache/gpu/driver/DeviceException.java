package io.kvcache.gpu.driver;

import java.io.Serial;

/// A device did not do what it was asked. Tiers catch it, count it, and the store serves on.
public final class DeviceException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1;

    private final DeviceError error;

    /// @param call what was asked, as the driver calls it
    /// @param name what it answered, as the driver calls it
    public DeviceException(DeviceError error, String call, String name) {
        super("%s: %s (%s); %s".formatted(call, error, name, error.advice()));
        this.error = error;
    }

    /// Returns the cause.
    public DeviceError error() {
        return error;
    }
}
