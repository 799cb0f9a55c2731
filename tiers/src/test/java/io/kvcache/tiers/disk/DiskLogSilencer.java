package io.kvcache.tiers.disk;

import java.util.logging.Level;
import java.util.logging.Logger;

/// Keeps what a [DiskLog] logs out of the output of tests that make it fail.
final class DiskLogSilencer {

    private final Logger logger = Logger.getLogger(DiskLog.class.getName());

    void silence() {
        logger.setLevel(Level.OFF);
    }

    void restore() {
        logger.setLevel(null);
    }
}
