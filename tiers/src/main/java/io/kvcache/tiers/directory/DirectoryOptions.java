package io.kvcache.tiers.directory;

import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;

/// How a [DiskDirectory] is opened.
///
/// @param onIncompatible whether a file is discarded that is not a disk tier of this format and size
/// @param depth operations on their way at a time, see [io.kvcache.tiers.device.FileDeviceOptions]
/// @param directIo whether the page cache is gone round
/// @param engine how the kernel is asked
/// @param limits of the log
/// @param reclaim rules of the log
/// @param coding whether bf16 values are written in three quarters of their bytes, without loss; what was coded before
///     is read either way
public record DirectoryOptions(
        OnIncompatible onIncompatible,
        int depth,
        DirectIo directIo,
        IoBackendType engine,
        LogLimits limits,
        ReclaimConfig reclaim,
        boolean coding) {

    /// Deep enough that an NVMe disk is busy with blocks of 64 KiB.
    private static final int DEFAULT_DEPTH = 64;

    /// Refuses what is incompatible, on the best path there is.
    public static DirectoryOptions defaults() {
        return new DirectoryOptions(
                OnIncompatible.REFUSE,
                DEFAULT_DEPTH,
                DirectIo.AUTO,
                IoBackendType.AUTO,
                LogLimits.defaults(),
                ReclaimConfig.defaults(),
                true);
    }

    public DirectoryOptions withOnIncompatible(OnIncompatible change) {
        return new DirectoryOptions(change, depth, directIo, engine, limits, reclaim, coding);
    }

    public DirectoryOptions withDepth(int change) {
        return new DirectoryOptions(onIncompatible, change, directIo, engine, limits, reclaim, coding);
    }

    public DirectoryOptions withDirect(DirectIo change) {
        return new DirectoryOptions(onIncompatible, depth, change, engine, limits, reclaim, coding);
    }

    public DirectoryOptions withEngine(IoBackendType change) {
        return new DirectoryOptions(onIncompatible, depth, directIo, change, limits, reclaim, coding);
    }

    public DirectoryOptions withLimits(LogLimits change) {
        return new DirectoryOptions(onIncompatible, depth, directIo, engine, change, reclaim, coding);
    }

    public DirectoryOptions withReclaim(ReclaimConfig change) {
        return new DirectoryOptions(onIncompatible, depth, directIo, engine, limits, change, coding);
    }

    public DirectoryOptions withCoding(boolean change) {
        return new DirectoryOptions(onIncompatible, depth, directIo, engine, limits, reclaim, change);
    }
}
