package io.kvcache.tiers;

import io.kvcache.core.store.HostStore;
import io.kvcache.core.time.Clock;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/// Ends a store: bars new claims, waits for the open ones, and unmaps the memory only if all are gone.
///
/// @param patience how long to wait for open tables
/// @param strict whether tables that stay open are an error of the caller's, not just a warning
/// @param tiers ends the movement to and from the tiers below, which still move what they have until then
record StoreShutdown(
        HostStore store, OpenHandles openHandles, Clock clock, Duration patience, boolean strict, AutoCloseable tiers) {

    private static final Logger LOG = System.getLogger(TieredKvCache.class.getName());
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /// @throws IllegalStateException in strict mode, when tables were still open
    void run() {
        if (!openHandles.stopAccepting()) {
            return;
        }
        long start = clock.nanos();
        while (openHandles.openCount() > 0 && clock.nanos() - start < patience.toNanos()) {
            clock.sleep(PAUSE_NANOS);
        }
        closeTiers();
        if (openHandles.openCount() == 0) {
            store.close();
            return;
        }
        IllegalStateException report = openHandles.leakReport();
        if (strict) {
            throw report;
        }
        LOG.log(Level.WARNING, "The store is closed and its memory stays mapped", report);
    }

    private void closeTiers() {
        try {
            tiers.close();
        } catch (Exception failed) {
            LOG.log(Level.WARNING, "The tiers below host memory did not close", failed);
        }
    }
}
