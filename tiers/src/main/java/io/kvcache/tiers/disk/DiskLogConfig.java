package io.kvcache.tiers.disk;

import io.kvcache.tiers.options.OnIncompatible;

/// Settings of a [DiskLog].
///
/// @param geometry layout of a device that is formatted; one that was formatted before keeps its regions
/// @param deviceId id of a device that is formatted: random, never the same twice, hard to guess
/// @param stagingBytes memory for blocks on their way to the device in another form, and for reads of parts;
///     whole pages, 0 for neither
/// @param coded whether bf16 values are coded on their way; what was coded before is read either way
public record DiskLogConfig(
        DiskGeometry geometry,
        long deviceId,
        OnIncompatible onIncompatible,
        LogLimits limits,
        ReclaimConfig reclaim,
        long stagingBytes,
        boolean coded) {

    /// Enough for the batches in flight, of a few large blocks each.
    private static final long MAX_STAGING_BYTES = 64L << 20;

    /// Returns settings that refuse incompatible devices, with the default limits and rules.
    public static DiskLogConfig of(DiskGeometry geometry, long deviceId) {
        return new DiskLogConfig(
                geometry, deviceId, OnIncompatible.REFUSE, LogLimits.defaults(), ReclaimConfig.defaults(), 0, false);
    }

    public DiskLogConfig withDeviceId(long change) {
        return new DiskLogConfig(geometry, change, onIncompatible, limits, reclaim, stagingBytes, coded);
    }

    public DiskLogConfig withOnIncompatible(OnIncompatible change) {
        return new DiskLogConfig(geometry, deviceId, change, limits, reclaim, stagingBytes, coded);
    }

    public DiskLogConfig withLimits(LogLimits change) {
        return new DiskLogConfig(geometry, deviceId, onIncompatible, change, reclaim, stagingBytes, coded);
    }

    public DiskLogConfig withReclaim(ReclaimConfig change) {
        return new DiskLogConfig(geometry, deviceId, onIncompatible, limits, change, stagingBytes, coded);
    }

    /// Returns settings with memory for two of the largest blocks, or 64 MiB.
    ///
    /// @param change whether bf16 values are coded
    public DiskLogConfig withStaging(boolean change) {
        long bytes = Math.min(MAX_STAGING_BYTES, 2 * geometry.regionBytes());
        return new DiskLogConfig(geometry, deviceId, onIncompatible, limits, reclaim, bytes, change);
    }

    /// Limits of the work that a [DiskLog] takes on at a time.
    ///
    /// @param appends waiting to be written; one more is answered by FULL
    /// @param reads reads in flight; one more is answered by FULL
    /// @param batchBytes a batch is closed at this size, unless a single block is larger
    /// @param recoveredPerTick most entries reported in one tick
    /// @param failures in a row after which the device counts as failed
    /// @param hangNanos an operation that takes longer makes the device count as failed; time between two ticks
    ///     counts for a second at most, as the process itself may have stood still
    public record LogLimits(
            int appends, int reads, int batchBytes, int recoveredPerTick, int failures, long hangNanos) {

        public LogLimits {
            require("appends", appends);
            require("reads", reads);
            require("batchBytes", batchBytes);
            require("recoveredPerTick", recoveredPerTick);
            require("failures", failures);
            require("hangNanos", hangNanos);
        }

        private static void require(String name, long value) {
            if (value <= 0) {
                throw new IllegalArgumentException(name + " must be at least 1, is " + value);
            }
        }

        /// Returns the default limits: batches of 8 MiB, which a fast disk writes in a few milliseconds; 16
        /// failures in a row; and 30 s for an answer, after which Linux resets an NVMe disk too.
        public static LogLimits defaults() {
            return new LogLimits(256, 1024, 8 << 20, 4096, 16, 30_000_000_000L);
        }
    }

    /// Rules by which a [DiskLog] makes room.
    ///
    /// @param freeRegions reclaims while fewer are free, at least 2: one is always reserved for kept entries
    /// @param keptPercent share of a region that can be kept, 0 to 75: kept entries are written again, and a log
    ///     that kept more would write mostly for itself
    /// @param rewriteBytes memory for kept entries, whole pages; a larger block cannot be kept
    /// @param discard whether the bytes of a free region are given back to the file system or the disk
    public record ReclaimConfig(int freeRegions, int keptPercent, int rewriteBytes, boolean discard) {

        /// Default reserve. At most half of a reclaimed region is kept; an eighth in reserve keeps it below that
        /// in all known traces.
        public static final int DEFAULT_RESERVE_PERCENT = 12;

        /// Share of a region for heads of batches and the trailer: more than blocks of 16 KiB take.
        private static final int METADATA_PERCENT = 2;

        private static final int MAX_KEPT_PERCENT = 75;

        private static final int DEFAULT_KEPT_PERCENT = 50;

        public ReclaimConfig {
            if (freeRegions < 2) {
                throw new IllegalArgumentException("freeRegions must be at least 2, is " + freeRegions);
            }
            if (keptPercent < 0 || keptPercent > MAX_KEPT_PERCENT) {
                throw new IllegalArgumentException(
                        "keptPercent must be 0 to " + MAX_KEPT_PERCENT + ", is " + keptPercent);
            }
            if (rewriteBytes < DiskGeometry.PAGE_BYTES || rewriteBytes % DiskGeometry.PAGE_BYTES != 0) {
                throw new IllegalArgumentException("rewriteBytes must be whole pages of " + DiskGeometry.PAGE_BYTES
                        + " bytes, at least one, is " + rewriteBytes);
            }
        }

        /// Returns the default rules: two free regions, half of a region kept at most, 16 MiB for rewriting, no
        /// discards.
        public static ReclaimConfig defaults() {
            return new ReclaimConfig(2, DEFAULT_KEPT_PERCENT, 16 << 20, false);
        }

        /// Returns these rules with three quarters of a region kept at most, for stores that keep only blocks used
        /// since they were written: the more is kept, the more was found on disk.
        public ReclaimConfig withMaxKeptPercent() {
            return new ReclaimConfig(freeRegions, Math.max(keptPercent, MAX_KEPT_PERCENT), rewriteBytes, discard);
        }

        /// Returns the bytes of blocks that may be alive on a device, each block in whole pages, so that
        /// reclaiming always finds dead ones.
        ///
        /// The rest is the open region, the regions kept free, the tables, and a reserve. The larger the
        /// reserve, the less of a region is still alive when its turn comes, and the less is written again.
        ///
        /// @param reservePercent 0 to 90
        public long liveBytes(DiskGeometry geometry, int reservePercent) {
            if (reservePercent < 0 || reservePercent > 90) {
                throw new IllegalArgumentException("reservePercent is " + reservePercent + "; it takes 0 to 90");
            }
            long regions = Math.max(1, geometry.regions() - freeRegions - 1L);
            return regions * (geometry.regionBytes() * (100 - METADATA_PERCENT) / 100) / 100 * (100 - reservePercent);
        }
    }
}
