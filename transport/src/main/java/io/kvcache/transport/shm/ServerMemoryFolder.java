package io.kvcache.transport.shm;

import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.shm.StagingArea.StagingHeader;
import io.kvcache.transport.net.CleanupThread;
import io.kvcache.transport.wire.SharedMemoryCodec.StagingDescriptor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;

/// The folder that contains a server's files, as the server names it.
///
/// The name is not trusted. This process maps only regular files in a folder that only this user can enter. So no
/// other user can have put the files there or truncated them.
final class ServerMemoryFolder {

    private static final Set<PosixFilePermission> PRIVATE = PosixFilePermissions.fromString("rwx------");

    /// Belongs to the user of this process.
    private static final Path SELF =
            Path.of("/proc", Long.toString(ProcessHandle.current().pid()));

    /// The server's names for the files that a client writes into.
    private static final Pattern STAGING_FILE_NAME = Pattern.compile("stage-[0-9]+-[0-9]+");

    private final Path folder;

    /// @throws IOException when the folder does not exist on this host, or is not a private one of this user
    ServerMemoryFolder(SharedMemoryFiles files) throws IOException {
        folder = path(files.directory());
        boolean isPrivate = Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
                && owner(folder).equals(owner(SELF))
                && Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS)
                        .equals(PRIVATE);
        if (!folder.isAbsolute() || !isPrivate) {
            throw new IOException(
                    folder + " must be a directory on this host, of mode 0700, that belongs to this user");
        }
    }

    /// Returns whether a file, or what a link leads to, belongs to the user of this process.
    static boolean isOfThisUser(Path file) throws IOException {
        return Files.getAttribute(file, "unix:uid").equals(owner(SELF));
    }

    private static Object owner(Path of) throws IOException {
        return Files.getAttribute(of, "unix:uid", LinkOption.NOFOLLOW_LINKS);
    }

    private static Path path(String name) throws IOException {
        try {
            return Path.of(name);
        } catch (InvalidPathException invalid) {
            throw new IOException("the server's directory or file is not a valid path on this host", invalid);
        }
    }

    /// Maps the beginning of a file, read-only.
    ///
    /// @throws IOException when it is not a regular file of this folder, or too short
    MemorySegment map(String name, long bytes, Arena arena) throws IOException {
        try (FileChannel channel = open(name, bytes, Set.of(StandardOpenOption.READ))) {
            return channel.map(FileChannel.MapMode.READ_ONLY, 0, bytes, arena);
        }
    }

    /// Maps a file that the server made for this process to write into.
    ///
    /// The server's other files have other names, and those for other sessions another header.
    ///
    /// @throws IOException when it is not such a file
    MemorySegment mapStaging(StagingDescriptor place, Arena arena) throws IOException {
        if (!STAGING_FILE_NAME.matcher(place.file()).matches()) {
            throw new IOException(
                    folder + " has staging memory of the name \"" + place.file() + "\"; allowed: " + STAGING_FILE_NAME);
        }
        long bytes = StagingHeader.BYTES + place.bytes();
        Set<OpenOption> options = Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE);
        try (FileChannel channel = open(place.file(), bytes, options)) {
            MemorySegment whole = channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
            if (!place.head().matches(whole)) {
                throw new IOException(place.file() + " is not the file that the server named: its ticket differs");
            }
            return whole;
        }
    }

    private FileChannel open(String name, long bytes, Set<? extends OpenOption> options) throws IOException {
        Path file = folder.resolve(path(name));
        boolean plain = folder.equals(file.getParent()) && Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS);
        if (!plain || !owner(file).equals(owner(folder))) {
            throw new IOException(file + " is not a regular file of this user in " + folder);
        }
        Set<OpenOption> all = new HashSet<>(options);
        all.add(LinkOption.NOFOLLOW_LINKS);
        FileChannel channel = FileChannel.open(file, all);
        if (channel.size() < bytes) {
            long found = channel.size();
            channel.close();
            throw new IOException(file + " has " + found + " bytes; allowed: " + bytes + " and up");
        }
        return channel;
    }

    /// Keeps files of another process mapped until the last user has released them.
    ///
    /// **Ownership.** The caller that makes one is its first user, and releases it once.
    ///
    /// **Threads.** Any.
    static final class SharedMapping {

        private static final System.Logger LOG = System.getLogger(SharedMapping.class.getName());

        /// Attempts to unmap, a millisecond apart, while a native call still uses the memory.
        private static final int UNMAP_ATTEMPTS = 1000;

        private static final long UNMAP_PAUSE_NANOS = 1_000_000;

        private final Arena arena = Arena.ofShared();
        private final AtomicInteger users = new AtomicInteger(1);
        private final Runnable onUnmapped;

        SharedMapping() {
            this(() -> {});
        }

        /// @param onUnmapped hears that nothing is mapped any more
        SharedMapping(Runnable onUnmapped) {
            this.onUnmapped = onUnmapped;
        }

        /// Returns the arena of the mapped files.
        Arena arena() {
            return arena;
        }

        /// Adds a user, until [#release]. Returns false when the files are unmapped already.
        boolean retain() {
            int now = users.get();
            while (now > 0 && !users.compareAndSet(now, now + 1)) {
                now = users.get();
            }
            return now > 0;
        }

        /// Removes a user. The last release has the files unmapped, which takes a while: all threads of the
        /// process have to leave the memory.
        void release() {
            int left = users.decrementAndGet();
            assert left >= 0 : "released more often than retained";
            if (left == 0) {
                CleanupThread.execute(() -> unmap(1));
            }
        }

        private void unmap(int attempt) {
            try {
                arena.close();
                onUnmapped.run();
            } catch (IllegalStateException heldByNativeCall) {
                if (attempt < UNMAP_ATTEMPTS) {
                    CleanupThread.executeAfter(UNMAP_PAUSE_NANOS, () -> unmap(attempt + 1));
                } else {
                    LOG.log(System.Logger.Level.WARNING, "shared memory stays mapped: a native call still uses it");
                }
            }
        }
    }
}
