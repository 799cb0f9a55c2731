package io.kvcache.transport.aeron;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The folder around the directory of an embedded driver: nobody but this user may enter, since who can read
/// the driver's files reads all blocks that pass. One driver has it at a time, by a lock that ends with the
/// process, so what a killed one left may be removed.
final class DriverFolder implements AutoCloseable {

    private static final Set<PosixFilePermission> PRIVATE = PosixFilePermissions.fromString("rwx------");
    private static final String DRIVER = "driver";

    private final Path folder;
    private final @Nullable FileChannel lock;

    private DriverFolder(Path folder, @Nullable FileChannel lock) {
        this.folder = folder;
        this.lock = lock;
    }

    /// The driver's directory in a server's folder.
    static Path driver(Path folder) {
        return folder.resolve(DRIVER);
    }

    /// Takes a folder that others know by its name.
    ///
    /// @throws IOException when it is somebody else's, or taken
    static DriverFolder take(Path folder) throws IOException {
        if (!Files.exists(folder, LinkOption.NOFOLLOW_LINKS)) {
            Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PRIVATE));
        }
        requirePrivate(folder);
        FileChannel channel =
                FileChannel.open(folder.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        if (locked(channel) == null) {
            channel.close();
            throw new IOException(folder + " belongs to another server; name another folder with dir=");
        }
        return new DriverFolder(folder, channel);
    }

    private static @Nullable FileLock locked(FileChannel channel) throws IOException {
        try {
            return channel.tryLock();
        } catch (OverlappingFileLockException ours) {
            return null;
        }
    }

    /// Makes one without a name that anybody knows.
    static DriverFolder make() throws IOException {
        Path shm = Path.of("/dev/shm");
        Path made = Files.isWritable(shm)
                ? Files.createTempDirectory(shm, "kvcache-aeron-")
                : Files.createTempDirectory("kvcache-aeron-");
        return new DriverFolder(made, null);
    }

    /// @throws IOException when others may enter the folder
    static void requirePrivate(Path folder) throws IOException {
        boolean good = Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
                && Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS)
                        .equals(PRIVATE)
                && owner(folder).equals(owner(Path.of("/proc/self")));
        if (!good) {
            throw new IOException(folder + " is no folder of mode 0700 of this user; remove it or name another");
        }
    }

    private static Object owner(Path of) throws IOException {
        return Files.getAttribute(of, "unix:uid");
    }

    Path driver() {
        return driver(folder);
    }

    /// What the driver had is gone by now. A folder with a name stays, and its lock's file, so that nobody
    /// locks a file that is being removed.
    @Override
    public void close() throws IOException {
        if (lock == null) {
            Files.deleteIfExists(folder);
        } else {
            lock.close();
        }
    }
}
