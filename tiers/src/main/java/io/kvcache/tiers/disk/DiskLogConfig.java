package io.kvcache.tiers.disk;

/// How a [DiskLog] is opened.
///
/// @param geometry of a device that is formatted; one that was formatted before keeps its regions
/// @param deviceId of a device that is formatted: random, never the same twice, hard to guess
public record DiskLogConfig(
        DiskGeometry geometry, long deviceId, OnIncompatible onIncompatible, LogLimits limits, ReclaimConfig reclaim) {

    /// What happens to a device that holds something else than a disk tier of this format and size.
    public enum OnIncompatible {
        /// Nothing: the log is [TierState#REFUSED].
        REFUSE,
        /// It is formatted, and what it held is lost.
        DISCARD
    }

    /// Refuses what is incompatible; usual limits and rules.
    public static DiskLogConfig of(DiskGeometry geometry, long deviceId) {
        return new DiskLogConfig(
                geometry, deviceId, OnIncompatible.REFUSE, LogLimits.defaults(), ReclaimConfig.defaults());
    }

    public DiskLogConfig withDeviceId(long change) {
        return new DiskLogConfig(geometry, change, onIncompatible, limits, reclaim);
    }

    public DiskLogConfig withOnIncompatible(OnIncompatible change) {
        return new DiskLogConfig(geometry, deviceId, change, limits, reclaim);
    }

    public DiskLogConfig withLimits(LogLimits change) {
        return new DiskLogConfig(geometry, deviceId, onIncompatible, change, reclaim);
    }

    public DiskLogConfig withReclaim(ReclaimConfig change) {
        return new DiskLogConfig(geometry, deviceId, onIncompatible, limits, change);
    }
}
