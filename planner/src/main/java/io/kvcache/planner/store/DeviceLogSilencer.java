package io.kvcache.planner.store;

import java.util.logging.Level;
import java.util.logging.Logger;

/// Stops a tier from logging its file and its I/O path at each of many openings.
public final class DeviceLogSilencer {

    /// Referenced here, as a logger without references is collected and loses its level.
    private static final Logger TIERS = Logger.getLogger("io.kvcache.tiers");

    private DeviceLogSilencer() {}

    /// Silences the tiers' informational messages in this JVM from now on.
    public static void silence() {
        TIERS.setLevel(Level.WARNING);
    }
}
