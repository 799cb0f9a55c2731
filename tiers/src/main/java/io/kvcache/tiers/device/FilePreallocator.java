package io.kvcache.tiers.device;

import io.kvcache.tiers.os.ByteSizeFormat;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.FallocateResult;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.LibcFunction;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// Gives a new file all its space, so that it cannot run out of it later.
///
/// The space is reserved beyond the end of the file, which moves only when all is there: whoever is killed in
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
                LOG.log(Level.WARNING, "The file system of {0} cannot reserve space: writes may find it full", path);
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
