package io.kvcache.tiers.memory;

import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.tiers.memory.MappedMemory.SharedMemoryFile;
import io.kvcache.tiers.memory.ShmDirectoryLock.LockedFile;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Host memory whose slots lie in one file of a known name, for clients that map it by that name.
///
/// Records and all else stay private. A process that maps the file sees all that is in it, so it is for one
/// trust domain.
///
/// **A file that stayed behind** after a crash is not locked: it is removed and made anew. One
/// that is locked belongs to another store that runs, and one of another user is left alone: both are
/// refused.
///
/// **Threads.** Any thread may reserve.
public final class NamedMemorySource implements HostMemorySource {

    /// The store's name for the memory of values.
    private static final String SLOTS = "slots";

    private static final int O_RDWR = 2;
    private static final int O_CREAT = 0x40;
    private static final int O_EXCL = 0x80;
    private static final int O_CLOEXEC = 0x80000;
    private static final int OWNER_ONLY = 0600;

    private final Path path;
    private final Libc libc;
    private final ShmFileFactory files;
    private final MappedMemorySource plain;

    /// @param directory of a file system in memory; must exist
    /// @param name of the file in it
    public NamedMemorySource(Path directory, String name) {
        path = directory.resolve(name);
        libc = Libc.system();
        files = new ShmFileFactory(libc, directory);
        plain = new MappedMemorySource(MemoryOptions.defaults());
    }

    @Override
    public HostMemory reserve(String purpose, long bytes) {
        return purpose.equals(SLOTS) ? named(new MappingRequest(purpose, bytes)) : plain.reserve(purpose, bytes);
    }

    private HostMemory named(MappingRequest wanted) {
        if (!libc.supports(LibcFunction.FALLOCATE)) {
            throw wanted.callFailed("fallocate", -Errno.ENOSYS.number());
        }
        try {
            SharedMemoryFile file = createLocked(wanted);
            try {
                files.reserveSpace(wanted, file, wanted.bytes());
            } catch (IOException | RuntimeException failure) {
                file.release().run();
                throw failure;
            }
            return plain.mapFile(wanted, file);
        } catch (IOException failure) {
            throw wanted.failed(failure.toString());
        }
    }

    private SharedMemoryFile createLocked(MappingRequest wanted) throws IOException {
        LockedFile here =
                LockedFile.tryAcquire(files.directory(), path.getFileName().toString());
        if (here == null) {
            throw alreadyLocked(wanted);
        }
        boolean good = false;
        try {
            removeLeftover(wanted);
            files.requireSpace(wanted, 0);
            SharedMemoryFile file = create(wanted, here);
            good = true;
            return file;
        } finally {
            if (!good) {
                here.release();
            }
        }
    }

    private IllegalStateException alreadyLocked(MappingRequest wanted) {
        return wanted.failed(path + " belongs to another store that runs; name another");
    }

    private void removeLeftover(MappingRequest wanted) throws IOException {
        if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
            return;
        }
        Object owner = Files.getAttribute(path, "unix:uid", LinkOption.NOFOLLOW_LINKS);
        boolean own = ((Number) owner).longValue() == libc.call(LibcFunction.GETEUID)
                && Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS);
        if (!own) {
            throw wanted.failed(path + " is there and not a file of this user; remove it or name another");
        }
        Object seen = currentFileKey();
        try (FileChannel channel = open()) {
            // The name may be another file's by the time that the lock is had: then its owner is at work.
            if (channel.tryLock() == null || seen == null || !seen.equals(currentFileKey())) {
                throw alreadyLocked(wanted);
            }
            Files.delete(path);
        }
    }

    private FileChannel open() throws IOException {
        return FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
    }

    private SharedMemoryFile create(MappingRequest wanted, LockedFile here) throws IOException {
        long descriptor = libc.callWithString(
                LibcFunction.OPEN, path.toString(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, OWNER_ONLY);
        if (descriptor < 0) {
            throw wanted.callFailed("creating " + path, descriptor);
        }
        FileChannel locked = null;
        boolean good = false;
        try {
            locked = openCreated();
            if (locked.tryLock() == null || !named((int) descriptor)) {
                throw wanted.failed(path + " was taken by another store at the same moment; name another");
            }
            good = true;
        } finally {
            if (!good) {
                close((int) descriptor, locked);
            }
        }
        FileChannel lock = locked;
        return new SharedMemoryFile((int) descriptor, path, "file " + path, () -> {
            path.toFile().delete(); // while the lock says that what has the name is this file
            close((int) descriptor, lock);
            here.release();
        });
    }

    /// Opens what was just created, which would otherwise stay.
    private FileChannel openCreated() throws IOException {
        try {
            return open();
        } catch (IOException failed) {
            path.toFile().delete();
            throw failed;
        }
    }

    /// Returns whether an open file is still the one of the name. Another process that found it before it was
    /// locked may have taken it for a leftover, and replaced it.
    private boolean named(int descriptor) throws IOException {
        Object open = Files.getAttribute(Path.of("/proc/self/fd/" + descriptor), "fileKey");
        return Objects.equals(open, currentFileKey());
    }

    /// Returns the identity of the file that has the name; null when none has.
    private @Nullable Object currentFileKey() throws IOException {
        try {
            return Files.getAttribute(path, "fileKey", LinkOption.NOFOLLOW_LINKS);
        } catch (NoSuchFileException gone) {
            return null;
        }
    }

    private void close(int descriptor, @Nullable FileChannel locked) {
        libc.call(LibcFunction.CLOSE, descriptor);
        try {
            if (locked != null) {
                locked.close();
            }
        } catch (IOException _) {
            // Its lock ends with the process at the latest.
        }
    }
}
