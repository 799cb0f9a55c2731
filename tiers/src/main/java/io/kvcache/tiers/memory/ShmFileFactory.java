package io.kvcache.tiers.memory;

import io.kvcache.tiers.memory.MappedMemory.SharedMemoryFile;
import io.kvcache.tiers.os.ByteSizeFormat;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.FallocateResult;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/// Creates files of a fixed size in a private folder of a file system in memory.
///
/// The space is taken before the file is mapped: on a full `/dev/shm` the first touch of a page would kill
/// the process by SIGBUS, at some time under load. Others of the same user open the file; the folder keeps
/// everybody else from putting another file in its place.
record ShmFileFactory(Libc libc, Path directory) {

    private static final int O_RDWR = 2;
    private static final int O_CREAT = 0x40;
    private static final int O_EXCL = 0x80;
    private static final int O_CLOEXEC = 0x80000;
    private static final int OWNER_ONLY = 0600;
    private static final Set<PosixFilePermission> PRIVATE = PosixFilePermissions.fromString("rwx------");

    /// Names tried: more than the files that one process has, its own and those a dead one of its number left.
    private static final int MAX_NAMES = 1024;

    SharedMemoryFile create(MappingRequest wanted) {
        return create(wanted, wanted.bytes());
    }

    /// Creates a file that has its size, and space for its first bytes only.
    ///
    /// @param spaceBytes up to the size
    SharedMemoryFile create(MappingRequest wanted, long spaceBytes) {
        if (!libc.supports(LibcFunction.FALLOCATE)) {
            throw wanted.callFailed("fallocate", -Errno.ENOSYS.number());
        }
        try {
            makePrivateDirectory(wanted);
            requireSpace(wanted, 0);
            SharedMemoryFile file = open(wanted);
            try {
                setSize(wanted, file);
                reserveSpace(wanted, file, spaceBytes);
            } catch (IOException | RuntimeException failure) {
                file.release().run();
                throw failure;
            }
            return file;
        } catch (IOException failure) {
            throw wanted.failed(failure.toString());
        }
    }

    /// Answers whether it was not there before.
    boolean makePrivateDirectory(MappingRequest wanted) throws IOException {
        boolean missing = !Files.exists(directory, LinkOption.NOFOLLOW_LINKS);
        if (missing) {
            Files.createDirectories(directory, PosixFilePermissions.asFileAttribute(PRIVATE));
        }
        Object owner = Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS);
        long self = libc.call(LibcFunction.GETEUID);
        boolean isPrivate = Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)
                && Files.getPosixFilePermissions(directory).equals(PRIVATE)
                && ((Number) owner).longValue() == self;
        if (!isPrivate) {
            throw wanted.failed("%s must be a directory of mode 0700 that belongs to user %s; remove it or name another"
                    .formatted(directory, self));
        }
        return missing;
    }

    private SharedMemoryFile open(MappingRequest wanted) {
        long pid = ProcessHandle.current().pid();
        for (int attempt = 0; attempt < MAX_NAMES; attempt++) {
            Path path = directory.resolve("%s-%s-%s".formatted(wanted.purpose(), pid, attempt));
            long descriptor = libc.callWithString(
                    LibcFunction.OPEN, path.toString(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, OWNER_ONLY);
            if (descriptor >= 0) {
                return new SharedMemoryFile(
                        (int) descriptor, path, "file " + path, () -> remove((int) descriptor, path));
            }
            if (!Errno.EEXIST.isResult(descriptor)) {
                throw wanted.callFailed("creating " + path, descriptor);
            }
        }
        throw wanted.failed(
                "%s files of that name are in %s; remove those that stayed behind".formatted(MAX_NAMES, directory));
    }

    private void remove(int descriptor, Path path) {
        libc.call(LibcFunction.CLOSE, descriptor);
        path.toFile().delete();
    }

    private void setSize(MappingRequest wanted, SharedMemoryFile file) {
        long sized = libc.call(LibcFunction.FTRUNCATE, file.descriptor(), wanted.bytes());
        if (sized < 0) {
            throw wanted.callFailed("giving " + file.path() + " its size", sized);
        }
    }

    void reserveSpace(MappingRequest wanted, SharedMemoryFile file, long bytes) throws IOException {
        require(wanted, FallocateResult.reserve(libc, file.descriptor(), 0, bytes));
    }

    /// Reserves a step more of a file.
    ///
    /// @param reserved bytes at its start that are
    /// @return how many are now
    long reserveStep(MappingRequest wanted, SharedMemoryFile file, long reserved) throws IOException {
        FallocateResult step = FallocateResult.reserveStep(libc, file.descriptor(), 0, reserved, wanted.bytes());
        require(wanted, step);
        return step.reservedBytes();
    }

    private void require(MappingRequest wanted, FallocateResult space) throws IOException {
        if (Errno.ENOSPC.isResult(space.result())) {
            requireSpace(wanted, space.reservedBytes());
        }
        if (space.result() < 0) {
            throw wanted.callFailed("reserving space in " + directory, space.result());
        }
    }

    void requireSpace(MappingRequest wanted, long reservedBytes) throws IOException {
        long usable = Files.getFileStore(directory).getUsableSpace() + reservedBytes;
        if (usable < wanted.bytes()) {
            throw wanted.callFailed(
                    "%s has only %s left, which".formatted(directory, ByteSizeFormat.format(usable)),
                    -Errno.ENOSPC.number());
        }
    }
}
