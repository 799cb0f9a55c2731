package io.kvcache.transport.aeron;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.agrona.CloseHelper;
import org.agrona.IoUtil;
import org.jspecify.annotations.Nullable;

/// The folder around the directory of an embedded driver: only this user may enter, since a process that can read
/// the driver's files reads all blocks that pass. One driver has it at a time, by a lock that ends with the
/// process, so what a killed one left may be removed.
final class DriverDirectory implements AutoCloseable {

    private static final Set<PosixFilePermission> PRIVATE = PosixFilePermissions.fromString("rwx------");
    private static final String DRIVER = "driver";
    private static final String LOCK = "lock";

    /// Prefix of folders with random names.
    private static final String PREFIX = "kvcache-aeron-of-";

    /// Folders that this process holds. Closing any channel of a file gives up the process's lock, so such a file
    /// may not be opened a second time.
    private static final Set<Path> TAKEN = ConcurrentHashMap.newKeySet();

    private final Path folder;
    private final FileChannel lock;
    private final boolean named;

    private DriverDirectory(Path folder, FileChannel lock, boolean named) {
        this.folder = folder;
        this.lock = lock;
        this.named = named;
    }

    /// The driver's directory in a server's folder.
    static Path driver(Path folder) {
        return folder.resolve(DRIVER);
    }

    /// Takes a folder that others know by its name.
    ///
    /// @throws IOException when it is another user's, or taken
    static DriverDirectory claim(Path folder) throws IOException {
        if (!Files.exists(folder, LinkOption.NOFOLLOW_LINKS)) {
            Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PRIVATE));
        }
        requirePrivate(folder);
        return claim(folder.toRealPath(), true);
    }

    /// Makes one with a random name, and removes what killed processes left of such.
    static DriverDirectory createTemporary() throws IOException {
        Path shm = Path.of("/dev/shm");
        Path base = Files.isWritable(shm) ? shm : Path.of(System.getProperty("java.io.tmpdir"));
        try (DirectoryStream<Path> others = Files.newDirectoryStream(base, PREFIX + "*")) {
            for (Path other : others) {
                removeAbandoned(other);
            }
        }
        return claim(Files.createTempDirectory(base, PREFIX).toRealPath(), false);
    }

    private static DriverDirectory claim(Path folder, boolean named) throws IOException {
        FileChannel lock = TAKEN.add(folder) ? tryLock(folder) : null;
        if (lock == null) {
            throw new IOException(folder + " belongs to another server; name another folder with dir=");
        }
        return new DriverDirectory(folder, lock, named);
    }

    /// @return null when another process has it, or when it cannot be had
    private static @Nullable FileChannel tryLock(Path folder) throws IOException {
        FileChannel channel = null;
        boolean good = false;
        try {
            channel = FileChannel.open(folder.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            good = channel.tryLock() != null;
            return good ? channel : null;
        } finally {
            if (!good) {
                CloseHelper.quietClose(channel);
                TAKEN.remove(folder);
            }
        }
    }

    /// A driver's directory is there only while its folder is locked, or after its process was killed.
    private static void removeAbandoned(Path other) {
        try {
            Path folder = other.toRealPath();
            if (Files.exists(driver(folder)) && TAKEN.add(folder)) {
                FileChannel lock = tryLock(folder);
                if (lock != null) {
                    IoUtil.delete(driver(folder).toFile(), true);
                    new DriverDirectory(folder, lock, false).close();
                }
            }
        } catch (IOException | RuntimeException notOurs) {
            System.getLogger(DriverDirectory.class.getName())
                    .log(System.Logger.Level.DEBUG, "left where it is: " + other, notOurs);
        }
    }

    /// @throws IOException when others may enter the folder
    static void requirePrivate(Path folder) throws IOException {
        boolean good = Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
                && Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS)
                        .equals(PRIVATE)
                && owner(folder).equals(owner(Path.of("/proc/self")));
        if (!good) {
            throw new IOException(
                    folder + " must be a directory of mode 0700 that belongs to this user; remove it or name another");
        }
    }

    private static Object owner(Path of) throws IOException {
        return Files.getAttribute(of, "unix:uid");
    }

    Path driver() {
        return driver(folder);
    }

    /// @throws IOException when the file system has less left
    void requireFreeSpace(long bytes) throws IOException {
        long left = Files.getFileStore(folder).getUsableSpace();
        if (left < bytes) {
            throw new IOException(
                    ("%s has %s bytes left; a media driver with one connection takes %s: name another folder"
                                    + " with dir=, or give less term-length")
                            .formatted(folder, left, bytes));
        }
    }

    /// Runs after the driver has ended. A folder with a name stays, and its lock's file, so that no process locks
    /// a file that is being removed.
    @Override
    @SuppressWarnings("try") // held until all is gone
    public void close() throws IOException {
        try (FileChannel last = lock) {
            if (!named) {
                Files.deleteIfExists(folder.resolve(LOCK));
                Files.deleteIfExists(folder);
            }
        } finally {
            TAKEN.remove(folder);
        }
    }
}
