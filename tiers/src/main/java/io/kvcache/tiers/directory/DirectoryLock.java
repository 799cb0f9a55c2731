package io.kvcache.tiers.directory;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// The claim of one opening on its directory, against other processes and against others in this JVM.
///
/// Against processes it is a lock on a file, which ends with the process however that ends. The file stays,
/// because removing it could leave two processes with a lock on two files of one name.
///
/// Linux drops a process's locks on a file when the process closes any descriptor of it. So within the JVM the
/// directory's identity is looked up in a set first, and the file of a directory that is there is not even
/// opened.
final class DirectoryLock implements AutoCloseable {

    /// Its name, and all that it says is the number of the process.
    static final String FILE = "lock";

    private static final int MAX_TEXT_BYTES = 32;

    private static final Set<Object> HELD = ConcurrentHashMap.newKeySet();

    private final Path folder;
    private final Object identity;
    private final FileChannel channel;

    private DirectoryLock(Path folder, Object identity, FileChannel channel) {
        this.folder = folder;
        this.identity = identity;
        this.channel = channel;
    }

    /// Locks a directory that is there.
    ///
    /// @throws DiskDirectoryException that names the holder, when another process holds it
    static DirectoryLock acquire(Path folder) {
        Object identity = identity(folder);
        if (!HELD.add(identity)) {
            throw new DiskDirectoryException(folder, "this process has it open already; close that first");
        }
        FileChannel channel = null;
        try {
            channel = open(folder);
            FileLock lock = channel.tryLock();
            if (lock == null) {
                throw new DiskDirectoryException(folder, holder(channel) + " has it open; only one can");
            }
            write(channel, String.valueOf(ProcessHandle.current().pid()));
            return new DirectoryLock(folder, identity, channel);
        } catch (AccessDeniedException denied) {
            release(identity, channel);
            throw new DiskDirectoryException(
                    folder, "this user may not open its file lock; run as the user whose server created it", denied);
        } catch (IOException failure) {
            release(identity, channel);
            throw new DiskDirectoryException(
                    folder, "its lock file cannot be used: " + FileErrorMessage.of(failure, ""), failure);
        } catch (DiskDirectoryException refused) {
            release(identity, channel);
            throw refused;
        }
    }

    /// Device and number, so that two names of one directory are one.
    private static Object identity(Path folder) {
        try {
            Object key = Files.readAttributes(folder, BasicFileAttributes.class).fileKey();
            return key == null ? folder.toRealPath() : key;
        } catch (IOException failure) {
            throw new DiskDirectoryException(
                    folder, "it cannot be read: " + FileErrorMessage.of(failure, folder.toString()), failure);
        }
    }

    private static FileChannel open(Path folder) throws IOException {
        Set<StandardOpenOption> options =
                Set.of(StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
        return FileChannel.open(
                folder.resolve(FILE),
                options,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    }

    private static String holder(FileChannel channel) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(MAX_TEXT_BYTES);
        int read = channel.read(bytes, 0);
        String text = read <= 0 ? "" : new String(bytes.array(), 0, read, US_ASCII);
        return text.matches("[0-9]+") ? "process " + text : "another process";
    }

    private static void write(FileChannel channel, String text) throws IOException {
        channel.truncate(0);
        channel.write(ByteBuffer.wrap(text.getBytes(US_ASCII)), 0);
    }

    /// The descriptor goes first: were the directory free before, another store of this process could have locked
    /// the file by the time that closing this one drops the lock.
    private static void release(Object identity, @Nullable FileChannel channel) {
        try {
            if (channel != null) {
                channel.close();
            }
        } catch (IOException ignored) {
            // The lock goes with the descriptor, which Linux lets go whatever close says.
        } finally {
            HELD.remove(identity);
        }
    }

    @Override
    public void close() {
        try {
            write(channel, "");
        } catch (IOException failure) {
            System.getLogger(DirectoryLock.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "The lock of " + folder + " keeps a number that is over",
                            failure);
        }
        release(identity, channel);
    }
}
