package io.kvcache.tiers.device;

import java.nio.file.Path;

/// What a [FileDevice] is made of.
///
/// @param path the file; its folder exists
/// @param size bytes, a multiple of [BlockDevice#ALIGNMENT]
/// @param depth operations on their way at a time, 1 to [BlockDevice#MAX_DEPTH]
/// @param direct whether the page cache is gone round
/// @param engine how the kernel is asked
/// @param create whether a file that is missing or empty is created, with all its space; one that is there
///     must have exactly `size` bytes
public record FileDeviceOptions(Path path, long size, int depth, Direct direct, IoEngine engine, boolean create) {

    /// Whether the page cache is gone round, by O_DIRECT.
    public enum Direct {
        /// Goes round it where the file system lets us, and says so in the log where it does not.
        AUTO,
        /// Goes round it, or fails to open.
        ON,
        /// Goes through it.
        OFF
    }

    /// How the kernel is asked.
    public enum IoEngine {
        /// io_uring where the kernel lets us; otherwise threads, and the log says why.
        AUTO,
        /// io_uring, or fails to open.
        IO_URING,
        /// A few threads that read and write by position.
        THREADS
    }

    public FileDeviceOptions {
        long _ = new Spans(size).size();
        RequestPool.requireDepth(depth);
    }

    /// A file that is created when it is missing, eight operations deep, on the best path there is.
    public static FileDeviceOptions of(Path path, long size) {
        return new FileDeviceOptions(path, size, 8, Direct.AUTO, IoEngine.AUTO, true);
    }

    public FileDeviceOptions withDepth(int newDepth) {
        return new FileDeviceOptions(path, size, newDepth, direct, engine, create);
    }

    public FileDeviceOptions withDirect(Direct newDirect) {
        return new FileDeviceOptions(path, size, depth, newDirect, engine, create);
    }

    public FileDeviceOptions withEngine(IoEngine newEngine) {
        return new FileDeviceOptions(path, size, depth, direct, newEngine, create);
    }

    public FileDeviceOptions withCreate(boolean newCreate) {
        return new FileDeviceOptions(path, size, depth, direct, engine, newCreate);
    }
}
