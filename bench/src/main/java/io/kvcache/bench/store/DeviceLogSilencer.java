package io.kvcache.bench.store;

import java.util.logging.Level;
import java.util.logging.Logger;

/// Stops the device from logging its I/O path at each of many openings.
public final class DeviceLogSilencer {

    /// Referenced here, as a logger without references is collected and loses its level.
    private static final Logger DEVICE_LOGGER = Logger.getLogger("io.kvcache.tiers.device");

    private DeviceLogSilencer() {}

    /// Silences the device's informational messages in this JVM from now on.
    public static void silence() {
        DEVICE_LOGGER.setLevel(Level.WARNING);
    }
}
