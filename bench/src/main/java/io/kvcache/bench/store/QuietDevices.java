package io.kvcache.bench.store;

import java.util.logging.Level;
import java.util.logging.Logger;

/// Keeps the device from saying at each of many openings what path it takes.
public final class QuietDevices {

    /// Held here, as loggers that nobody holds forget their level.
    private static final Logger DEVICE = Logger.getLogger("io.kvcache.tiers.device");

    private QuietDevices() {}

    /// From now on, in this JVM.
    public static void begin() {
        DEVICE.setLevel(Level.WARNING);
    }
}
