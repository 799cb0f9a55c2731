package io.kvcache.tiers.device;

import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.device.IoRequest.IoRequestPool;
import io.kvcache.tiers.device.IoUring.IoUringSetup;
import io.kvcache.tiers.device.IoUringBackend.EventFd;
import io.kvcache.tiers.os.Libc;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/// Opens preallocated files of mode 0600, and raw disks, as [BlockDevice]s.
///
/// The kernel is asked through io_uring with a registered file, and with registered buffers for the pools it
/// was given; where that is refused, as default container profiles do, by a few threads that read and write
/// by position. O_DIRECT goes round the page cache; a file system that refuses it gets buffered reads and
/// writes. The log says once, at opening, why the best is not in use; [BlockDevice#describe] says what is in use
/// at any time.
///
/// **Ownership and threads.** As [BlockDevice]. A close waits at most a minute for operations on their way. The
/// threads of the fall-back end with it.
public final class FileDevice {

    private static final Logger LOG = System.getLogger(FileDevice.class.getName());

    /// A disk answers in milliseconds; Linux gives up on an NVMe command after 30 s and resets the disk.
    private static final long CLOSE_LIMIT_NANOS = 60_000_000_000L;

    private FileDevice() {}

    /// Opens the file.
    ///
    /// @throws IOException that names the file, what is wrong, and what to do; nothing has changed then
    /// @throws IllegalStateException when the JVM refuses native access; names the flag that allows it
    public static BlockDevice open(FileDeviceOptions options) throws IOException {
        return open(options, Libc.system());
    }

    static BlockDevice open(FileDeviceOptions options, Libc libc) throws IOException {
        DeviceFile file = DeviceFile.open(libc, options);
        try {
            IoBackend ioBackend = openBackend(options, file);
            return new AsyncDevice(
                    options.path().toString(),
                    new SpanValidator(options.size()),
                    ioBackend,
                    new AsyncDevice.CloseOptions(CLOSE_LIMIT_NANOS, file::close),
                    () -> file.lossCause(options.size()));
        } catch (IOException | RuntimeException failure) {
            file.close();
            throw failure;
        }
    }

    private static IoBackend openBackend(FileDeviceOptions options, DeviceFile file) throws IOException {
        IoRequestPool requests = new IoRequestPool(options.depth());
        if (options.engine() == IoBackendType.THREADS) {
            return new ThreadPoolBackend(file, requests);
        }
        IoUringSetup setup = IoUringSetup.request(file.libc(), options.depth() + EventFd.ENTRIES);
        if (setup.isAccepted()) {
            return openIoUring(new IoUring(file.libc(), setup), file, requests);
        }
        if (options.engine() == IoBackendType.IO_URING) {
            throw new IOException("Cannot open %s: io_uring is refused, %s; choose engine AUTO or THREADS"
                    .formatted(options.path(), setup.refusal()));
        }
        LOG.log(Level.WARNING, "io_uring is refused for {0}, threads do: {1}", options.path(), setup.refusal());
        return new ThreadPoolBackend(file, requests);
    }

    private static IoBackend openIoUring(IoUring ioUring, DeviceFile file, IoRequestPool requests) throws IOException {
        try {
            return new IoUringBackend(ioUring, EventFd.open(file.libc()), file, requests);
        } catch (IOException failure) {
            ioUring.close();
            throw failure;
        }
    }
}
