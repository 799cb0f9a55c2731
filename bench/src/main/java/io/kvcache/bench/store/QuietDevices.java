package io.kvcache.bench.crash;

import java.util.logging.Level;
import java.util.logging.Logger;

/// Keeps the device from saying at each of many openings what path it takes.
final class Quiet {

    /// Held here, as loggers that nobody holds forget their level.
    private static final Logger DEVICE = Logger.getLogger("io.kvcache.tiers.device");

    private Quiet() {}

    static void devices() {
        DEVICE.setLevel(Level.WARNING);
    }
}
