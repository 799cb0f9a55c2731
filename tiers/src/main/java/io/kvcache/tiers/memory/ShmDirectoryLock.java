package io.kvcache.tiers.memory;

import io.kvcache.tiers.memory.SharedMemorySource.AbandonedFolder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// The right to a folder of files in memory, which one store at a time has: a lock on a file in it, which
/// ends with the process at the latest.
///
/// Releasing it removes the lock's file, and the folder if a store made it. The lock's file has a byte then, so
/// that the store after a killed one knows. Another process may have opened that file just before, and would
/// lock a file that no other process can find: so the holder of the lock gives the file a random length and
/// looks whether it is the length of what has the name. It is not opened for that: closing it would drop the
/// lock ([LockedFile]).
///
/// The new holder removes the files of an earlier store that was killed. Processes that have those
/// files mapped keep what they have: a file without a name stays as it is until its last mapping goes.
///
/// Folders of other killed stores are found by what lies in them and [removed][#removeAbandoned]. Such a folder
/// gets another name first, as a store that starts may want its name and cannot wait until gigabytes are freed.
final class ShmDirectoryLock implements AutoCloseable {

    private static final String LOCK = "lock";

    /// The names that [ShmFileFactory] gives, and those of the sockets that a server adds.
    private static final Pattern FILE = Pattern.compile("(slots|records|stage)-[0-9]+-[0-9]+|gpu-[0-9]+");

    private static final FileAttribute<Set<PosixFilePermission>> OWNER_ONLY =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

    private static final Set<OpenOption> READ_WRITE = Set.of(
            StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE, LinkOption.NOFOLLOW_LINKS);

    private static final Set<OpenOption> READ_WRITE_EXISTING =
            Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);

    private static final Set<PosixFilePermission> PRIVATE = PosixFilePermissions.fromString("rwx------");

    /// Belongs to the user of this process.
    private static final Path SELF = Path.of("/proc/self");

    private static final System.Logger LOG = System.getLogger(ShmDirectoryLock.class.getName());

    private static final long MAX_LOCK_FILE_BYTES = 1L << 30;

    /// The length of the lock's file in a folder that a store made.
    private static final int OWNED_BYTES = 1;

    private final LockedFile lockedFile;
    private final FileChannel lock;
    private final Path folder;
    private final boolean ownsFolder;

    private ShmDirectoryLock(LockedFile here, FileChannel lock, Path folder, boolean ownsFolder) {
        this.lockedFile = here;
        this.lock = lock;
        this.folder = folder;
        this.ownsFolder = ownsFolder;
    }

    /// Claims a private folder that exists, and empties it. Returns null when another process has it, or removes it
    /// at this moment.
    ///
    /// @param made whether the caller has made it
    /// @throws IllegalStateException when a store of this process has it
    static @Nullable ShmDirectoryLock tryAcquire(MappingRequest wanted, Path folder, boolean made) throws IOException {
        LockedFile here = LockedFile.tryAcquire(folder, LOCK);
        if (here == null) {
            throw alreadyLocked(wanted, folder);
        }
        FileChannel channel = null;
        boolean good = false;
        try {
            channel = FileChannel.open(folder.resolve(LOCK), READ_WRITE, OWNER_ONLY);
            if (channel.tryLock() == null) {
                return null;
            }
            boolean ownsFolder = made || channel.size() == OWNED_BYTES;
            if (!isCurrentFile(channel, folder.resolve(LOCK))) {
                return null;
            }
            if (ownsFolder) {
                channel.write(ByteBuffer.allocate(OWNED_BYTES), 0);
            }
            removeLeftovers(folder);
            good = true;
            return new ShmDirectoryLock(here, channel, folder, ownsFolder);
        } finally {
            if (!good) {
                release(here, channel);
            }
        }
    }

    static IllegalStateException alreadyLocked(MappingRequest wanted, Path folder) {
        return wanted.failed(folder + " belongs to another store that runs; name another");
    }

    /// Returns the folders of stores that were killed, and removes them if wanted. They belong to this user, have
    /// the files of a store and nothing else, and a lock that is free. Those that a process still maps stay, as far
    /// as this user can see.
    ///
    /// @param parent a file system in memory, such as `/dev/shm`
    static List<AbandonedFolder> abandoned(Path parent, boolean remove) {
        List<AbandonedFolder> found = new ArrayList<>();
        try (DirectoryStream<Path> folders = Files.newDirectoryStream(parent)) {
            for (Path folder : folders) {
                AbandonedFolder abandoned = abandonedFolder(folder, remove);
                if (abandoned != null) {
                    found.add(abandoned);
                }
            }
        } catch (IOException | DirectoryIteratorException none) {
            LOG.log(Level.DEBUG, "no folders of killed stores are looked for in " + parent, none);
        }
        return found;
    }

    private static @Nullable AbandonedFolder abandonedFolder(Path folder, boolean remove) {
        try {
            long bytes = isPrivate(folder) ? storeBytes(folder) : 0;
            if (bytes == 0) {
                return null;
            }
            List<Long> mappedBy = processesThatMap(folder);
            boolean abandoned = (!remove || mappedBy.isEmpty()) && takeAbandoned(folder, remove);
            return abandoned ? new AbandonedFolder(folder, bytes, mappedBy) : null;
        } catch (IOException | DirectoryIteratorException busy) {
            LOG.log(Level.DEBUG, "left where it is: " + folder, busy);
            return null;
        }
    }

    private static boolean isPrivate(Path folder) throws IOException {
        return Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
                && Files.getAttribute(folder, "unix:uid").equals(Files.getAttribute(SELF, "unix:uid"))
                && Files.getPosixFilePermissions(folder).equals(PRIVATE);
    }

    /// Returns how large the files of a store are, or 0 when something else lies in the folder, or no lock.
    private static long storeBytes(Path folder) throws IOException {
        long bytes = 0;
        boolean locked = false;
        try (DirectoryStream<Path> all = Files.newDirectoryStream(folder)) {
            for (Path each : all) {
                String name = each.getFileName().toString();
                if (!name.equals(LOCK) && !FILE.matcher(name).matches()) {
                    return 0;
                }
                locked |= name.equals(LOCK) && Files.isRegularFile(each, LinkOption.NOFOLLOW_LINKS);
                bytes += name.equals(LOCK) ? 0 : Files.size(each);
            }
        }
        return locked ? bytes : 0;
    }

    private static List<Long> processesThatMap(Path folder) throws IOException {
        List<Long> found = new ArrayList<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(Path.of("/proc"), "[0-9]*")) {
            for (Path process : processes) {
                if (isMappedBy(process, folder + "/")) {
                    found.add(Long.parseLong(process.getFileName().toString()));
                }
            }
        }
        return found;
    }

    private static boolean isMappedBy(Path process, String prefix) {
        try (BufferedReader maps = Files.newBufferedReader(process.resolve("maps"), StandardCharsets.ISO_8859_1)) {
            return maps.lines().anyMatch(line -> line.contains(prefix));
        } catch (IOException | UncheckedIOException ended) {
            return false; // or of another user
        }
    }

    /// Returns whether the lock is free, after taking it.
    private static boolean takeAbandoned(Path folder, boolean remove) throws IOException {
        LockedFile here = LockedFile.tryAcquire(folder, LOCK);
        if (here == null) {
            return false;
        }
        FileChannel channel = null;
        try {
            channel = FileChannel.open(folder.resolve(LOCK), READ_WRITE_EXISTING);
            boolean free = channel.tryLock() != null;
            if (free && remove) {
                boolean ownsFolder = channel.size() == OWNED_BYTES;
                free = isCurrentFile(channel, folder.resolve(LOCK));
                if (free) {
                    remove(folder, ownsFolder);
                }
            }
            return free;
        } finally {
            release(here, channel);
        }
    }

    /// Of a folder that no store has made, the files alone.
    private static void remove(Path folder, boolean ownsFolder) throws IOException {
        Path place = folder;
        if (ownsFolder) {
            String name = "kvcache-removed-"
                    + Long.toHexString(ThreadLocalRandom.current().nextLong());
            place = Files.move(folder, folder.resolveSibling(name), StandardCopyOption.ATOMIC_MOVE);
        }
        removeLeftovers(place);
        Files.deleteIfExists(place.resolve(LOCK));
        if (ownsFolder) {
            Files.deleteIfExists(place);
        }
    }

    /// Returns whether a locked file is the one of this name.
    private static boolean isCurrentFile(FileChannel locked, Path name) throws IOException {
        long bytes = ThreadLocalRandom.current().nextLong(OWNED_BYTES + 1, MAX_LOCK_FILE_BYTES);
        locked.truncate(0).write(ByteBuffer.allocate(1), bytes - 1);
        try {
            return Files.readAttributes(name, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS)
                            .size()
                    == bytes;
        } catch (NoSuchFileException gone) {
            return false;
        } finally {
            locked.truncate(0);
        }
    }

    private static void removeLeftovers(Path folder) throws IOException {
        try (DirectoryStream<Path> all = Files.newDirectoryStream(folder)) {
            for (Path each : all) {
                if (FILE.matcher(each.getFileName().toString()).matches()) {
                    Files.delete(each);
                }
            }
        }
    }

    @Override
    public void close() {
        try {
            Files.deleteIfExists(folder.resolve(LOCK));
            if (ownsFolder) {
                Files.deleteIfExists(folder);
            }
        } catch (IOException _) {
            // Something else lies in the folder.
        }
        release(lockedFile, lock);
    }

    /// The descriptor goes first: were the claim free before, another store of this process could have locked the
    /// file by the time that closing this one drops the lock.
    private static void release(LockedFile here, @Nullable FileChannel lock) {
        try {
            if (lock != null) {
                lock.close();
            }
        } catch (IOException _) {
            // The lock ends with the process at the latest.
        } finally {
            here.release();
        }
    }

    /// A file that a store of this process locks, or is about to.
    ///
    /// Linux drops all of a process's locks on a file when the process closes any descriptor of it. So a file that
    /// is claimed here is not even opened a second time: a store that wants its lock asks here first, and gives it
    /// back after its descriptors are closed.
    ///
    /// **Threads.** Any.
    ///
    /// @param folder device and number of the folder, so that two names of one folder are one
    record LockedFile(Object folder, String name) {

        private static final Set<LockedFile> HELD = ConcurrentHashMap.newKeySet();

        /// Claims a file of a folder that is there, or answers null when a store of this process has it.
        static @Nullable LockedFile tryAcquire(Path folder, String name) throws IOException {
            Object key = Files.readAttributes(folder, BasicFileAttributes.class).fileKey();
            LockedFile wanted = new LockedFile(key == null ? folder.toRealPath() : key, name);
            return HELD.add(wanted) ? wanted : null;
        }

        /// Gives it back, once.
        void release() {
            HELD.remove(this);
        }
    }
}
