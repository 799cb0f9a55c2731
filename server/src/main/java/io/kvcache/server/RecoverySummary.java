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
                "The disks have told what they held: %,d blocks and values found again %.1f s after the store was open; %,d bytes are on"
                        + " disk now. Left out: %,d that newer ones or deletions came after, %,d without the blocks"
                        + " before them, %,d for which the memory has no record",
                stats.restored(),
                nanos / (double) TimeUnit.SECONDS.toNanos(1),
                bytes,
                stats.superseded(),
                stats.orphans(),
                stats.withoutRecord());
    }
}
