package io.kvcache.tiers.device;

import io.kvcache.tiers.device.IoRequest.IoRequestPool;
import java.nio.file.Path;

/// Settings of a [FileDevice].
///
/// @param path the file; its folder exists
/// @param size bytes, a multiple of [BlockDevice#ALIGNMENT]
/// @param depth operations in flight at a time, 1 to [BlockDevice#MAX_DEPTH]
/// @param directIo whether to bypass the page cache
/// @param engine interface to the kernel
/// @param create whether a file that is missing or empty is created, with all its space; an existing file must
///     have exactly `size` bytes
public record FileDeviceOptions(
        Path path, long size, int depth, DirectIo directIo, IoBackendType engine, boolean create) {

    /// Use of O_DIRECT to bypass the page cache.
    public enum DirectIo {
        /// Bypasses it where the file system permits, and logs it where not.
        AUTO,
        /// Bypasses it, or fails to open.
        ON,
        /// Uses the page cache.
        OFF
    }

    /// Interface to the kernel.
    public enum IoBackendType {
        /// io_uring where the kernel permits it; otherwise threads, and the log says why.
        AUTO,
        /// io_uring, or fails to open.
        IO_URING,
        /// A few threads that read and write by position.
        THREADS
    }

    public FileDeviceOptions {
        long _ = new SpanValidator(size).size();
        IoRequestPool.requireDepth(depth);
    }

    /// Returns options for a file that is created when it is missing, eight operations deep, on the best available
    /// path.
    public static FileDeviceOptions of(Path path, long size) {
        return new FileDeviceOptions(path, size, 8, DirectIo.AUTO, IoBackendType.AUTO, true);
    }

    public FileDeviceOptions withDepth(int newDepth) {
        return new FileDeviceOptions(path, size, newDepth, directIo, engine, create);
    }

    public FileDeviceOptions withDirect(DirectIo newDirect) {
        return new FileDeviceOptions(path, size, depth, newDirect, engine, create);
    }

    public FileDeviceOptions withEngine(IoBackendType newEngine) {
        return new FileDeviceOptions(path, size, depth, directIo, newEngine, create);
    }

    public FileDeviceOptions withCreate(boolean newCreate) {
        return new FileDeviceOptions(path, size, depth, directIo, engine, newCreate);
    }
}
