package io.kvcache.bench.store;

import java.util.logging.Level;
import java.util.logging.Logger;

/// Keeps the device from saying at each of many openings what path it takes.
public final class DeviceLogSilencer {

    /// Held here, as loggers that nobody holds forget their level.
    private static final Logger DEVICE_LOGGER = Logger.getLogger("io.kvcache.tiers.device");

    private DeviceLogSilencer() {}

    /// From now on, in this JVM.
    public static void silence() {
        DEVICE_LOGGER.setLevel(Level.WARNING);
    }
}
