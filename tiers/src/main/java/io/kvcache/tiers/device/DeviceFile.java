package io.kvcache.tiers.device;

import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.os.ByteSizeFormat;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.FallocateResult;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;

/// The open file of a [FileDevice].
///
/// **Ownership.** The caller that opened it closes it, after the engine that uses it.
///
/// @param direct whether its reads and writes go round the page cache
record DeviceFile(Libc libc, Path path, int descriptor, boolean direct) {

    private static final Logger LOG = System.getLogger(DeviceFile.class.getName());

    private static final int O_RDWR = 2;
    private static final int O_CREAT = 0x40;
    private static final int O_CLOEXEC = 0x80000;

    /// One of the few flags whose number depends on the processor; these are x86 and ARM.
    private static final int O_DIRECT = System.getProperty("os.arch").equals("aarch64") ? 0x10000 : 0x4000;

    private static final int OWNER_ONLY = 0600;
    private static final int SEEK_END = 2;

    /// FALLOC_FL_PUNCH_HOLE, and FALLOC_FL_KEEP_SIZE without which the kernel refuses it.
    static final int PUNCH_HOLE = 3;

    /// Opens the file, and creates it with all its space if it is to and has no bytes yet.
    ///
    /// @throws IOException that names the file and what to do; then nothing has changed
    static DeviceFile open(Libc libc, FileDeviceOptions options) throws IOException {
        if (!libc.supports(LibcFunction.PREAD)) {
            throw new IOException("Cannot open %s: disks need Linux".formatted(options.path()));
        }
        DeviceFile file = openWithOptions(libc, options);
        try {
            file.requireSize(options);
            return file.direct && file.refusesDirectReads() ? file.reopenBuffered(options) : file;
        } catch (IOException | RuntimeException failure) {
            file.close();
            throw failure;
        }
    }

    private static DeviceFile openWithOptions(Libc libc, FileDeviceOptions options) throws IOException {
        if (options.directIo() == DirectIo.OFF) {
            return open(libc, options, 0);
        }
        long descriptor = tryOpen(libc, options, O_DIRECT);
        if (Errno.EINVAL.isResult(descriptor)) {
            return openBuffered(libc, options);
        }
        return new DeviceFile(libc, options.path(), requireOpened(options.path(), descriptor), true);
    }

    private static DeviceFile openBuffered(Libc libc, FileDeviceOptions options) throws IOException {
        if (options.directIo() == DirectIo.ON) {
            throw new IOException("Cannot open %s: its file system refuses O_DIRECT; choose direct AUTO or OFF"
                    .formatted(options.path()));
        }
        LOG.log(
                Level.WARNING,
                "The file system of {0} refuses O_DIRECT: it goes through the page cache",
                options.path());
        return open(libc, options, 0);
    }

    private static DeviceFile open(Libc libc, FileDeviceOptions options, int flags) throws IOException {
        return new DeviceFile(
                libc, options.path(), requireOpened(options.path(), tryOpen(libc, options, flags)), false);
    }

    private static long tryOpen(Libc libc, FileDeviceOptions options, int flags) {
        int all = flags | O_RDWR | O_CLOEXEC | (options.create() ? O_CREAT : 0);
        return libc.callWithString(LibcFunction.OPEN, options.path().toString(), all, OWNER_ONLY);
    }

    private static int requireOpened(Path path, long descriptor) throws IOException {
        if (descriptor < 0) {
            throw new IOException("Cannot open %s: %s".formatted(path, Errno.explain(descriptor)));
        }
        return (int) descriptor;
    }

    private void requireSize(FileDeviceOptions options) throws IOException {
        long found = libc.call(LibcFunction.LSEEK, descriptor, 0L, SEEK_END);
        if (found < 0) {
            throw new IOException("Cannot use %s: its size gave %s".formatted(path, Errno.explain(found)));
        }
        if (found == 0 && options.create()) {
            new FilePreallocator(libc, path, options.size()).preallocate(descriptor);
        } else if (found != options.size()) {
            throw new IOException("Cannot use %s: it has %s bytes and must have %s; give its size, or remove it"
                    .formatted(path, found, options.size()));
        }
    }

    /// Some file systems take the flag and refuse the reads.
    private boolean refusesDirectReads() throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            long page =
                    arena.allocate(BlockDevice.ALIGNMENT, BlockDevice.ALIGNMENT).address();
            long read = libc.call(LibcFunction.PREAD, descriptor, page, (long) BlockDevice.ALIGNMENT, 0L);
            if (read < 0 && !Errno.EINVAL.isResult(read)) {
                throw new IOException("Cannot read %s: %s".formatted(path, Errno.explain(read)));
            }
            return read < 0;
        }
    }

    private DeviceFile reopenBuffered(FileDeviceOptions options) throws IOException {
        DeviceFile buffered = openBuffered(libc, options);
        close();
        return buffered;
    }

    /// Returns whether the file was removed or cut since it was opened, see [BlockDevice#lossCause]: writes and syncs
    /// of the open file go on as before.
    ///
    /// @param size that it must have
    String lossCause(long size) {
        Map<String, Object> found;
        try {
            found = Files.readAttributes(
                    Path.of("/proc/self/fd", String.valueOf(descriptor)), "unix:isRegularFile,nlink,size");
        } catch (IOException | UnsupportedOperationException unknown) {
            return "";
        }
        if (!Boolean.TRUE.equals(found.get("isRegularFile"))) {
            return "";
        }
        if (found.get("nlink") instanceof Integer links && links == 0) {
            return path + " was removed; what it holds is gone when the server ends";
        }
        return found.get("size") instanceof Long bytes && bytes != size
                ? path + " has " + bytes + " bytes and must have " + size + "; it was cut"
                : "";
    }

    void close() {
        long result = libc.call(LibcFunction.CLOSE, descriptor);
        if (result < 0) {
            LOG.log(Level.WARNING, "Closing {0} gave {1}", path, Errno.explain(result));
        }
    }

    /// Gives a new file all its space, so that it cannot run out of it later.
    ///
    /// The space is reserved beyond the end of the file, which moves only when all is there: a process killed in
    /// between leaves an empty file, and an empty file is a new one.
    record FilePreallocator(Libc libc, Path path, long size) {

        private static final Logger LOG = System.getLogger(FilePreallocator.class.getName());

        private static final int FALLOC_FL_KEEP_SIZE = 1;

        /// Fills an empty file, and makes it and its name survive a loss of power.
        ///
        /// @throws IOException when it cannot be had; the file is removed then
        void preallocate(int descriptor) throws IOException {
            try {
                requireSpace();
                FallocateResult space = FallocateResult.reserve(libc, descriptor, FALLOC_FL_KEEP_SIZE, size);
                if (Errno.EOPNOTSUPP.isResult(space.result())) {
                    LOG.log(
                            Level.WARNING,
                            "The file system of {0} cannot reserve space: writes may find it full",
                            path);
                } else {
                    require("reserving %s".formatted(ByteSizeFormat.format(size)), space.result());
                }
                require("setting its size", libc.call(LibcFunction.FTRUNCATE, descriptor, size));
                require("syncing it", libc.call(LibcFunction.FDATASYNC, descriptor));
                try (FileChannel folder = FileChannel.open(folder(), StandardOpenOption.READ)) {
                    folder.force(true);
                }
            } catch (IOException failure) {
                Files.deleteIfExists(path);
                throw failure;
            }
        }

        private void requireSpace() throws IOException {
            long usable = Files.getFileStore(folder()).getUsableSpace();
            if (usable < size) {
                throw new IOException("Cannot create %s of %s: its file system has only %s left"
                        .formatted(path, ByteSizeFormat.format(size), ByteSizeFormat.format(usable)));
            }
        }

        private void require(String action, long result) throws IOException {
            if (result < 0) {
                throw new IOException("Cannot create %s: %s gave %s".formatted(path, action, Errno.explain(result)));
            }
        }

        private Path folder() {
            Path parent = path.toAbsolutePath().getParent();
            return parent == null ? path : parent;
        }
    }
}
