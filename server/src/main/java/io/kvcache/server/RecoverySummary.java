package io.kvcache.server;

import io.kvcache.core.store.TierPort.DiskTierStats;
import io.kvcache.tiers.TieredKvCache;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/// Says once what the disks held when the server started, and what of it did not count.
final class RecoverySummary {

    private static final Logger LOG = System.getLogger(RecoverySummary.class.getName());

    private RecoverySummary() {}

    /// All disks have told what they held. Nothing is said where there are none.
    ///
    /// @param nanos since the store was open
    static void log(TieredKvCache cache, long nanos) {
        DiskTierStats stats = cache.offloadStats();
        if (!stats.disks().isEmpty()) {
            LOG.log(Level.INFO, format(stats, nanos));
        }
    }

    static String format(DiskTierStats stats, long nanos) {
        long bytes =
                stats.disks().stream().mapToLong(DiskTierStats.LiveUsage::bytes).sum();
        return String.format(
                Locale.ROOT,
                "Recovery from disk finished: %,d blocks and values found, %.1f s after the store opened; %,d bytes are on"
                        + " disk now. Left out: %,d replaced or deleted later, %,d without their parent blocks,"
                        + " %,d for want of records in memory",
                stats.restored(),
                nanos / (double) TimeUnit.SECONDS.toNanos(1),
                bytes,
                stats.superseded(),
                stats.orphans(),
                stats.withoutRecord());
    }
}
