package io.kvcache.tiers.directory;

import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;

/// How a [DiskDirectory] is opened.
///
/// @param onIncompatible whether a file is discarded that is not a disk tier of this format and size
/// @param directIo whether the page cache is bypassed
/// @param engine how the kernel is asked
/// @param limits of the log
/// @param reclaim rules of the log
/// @param coding whether bf16 values are written in three quarters of their bytes, without loss; what was coded before
///     is read either way
public record DirectoryOptions(
        OnIncompatible onIncompatible,
        DirectIo directIo,
        IoBackendType engine,
        LogLimits limits,
        ReclaimConfig reclaim,
        boolean coding) {

    /// Refuses what is incompatible, on the best path there is.
    public static DirectoryOptions defaults() {
        return of(OnIncompatible.REFUSE, ReclaimConfig.defaults(), true);
    }

    /// On the best path there is.
    public static DirectoryOptions of(OnIncompatible onIncompatible, ReclaimConfig reclaim, boolean coding) {
        return new DirectoryOptions(
                onIncompatible, DirectIo.AUTO, IoBackendType.AUTO, LogLimits.defaults(), reclaim, coding);
    }
}
