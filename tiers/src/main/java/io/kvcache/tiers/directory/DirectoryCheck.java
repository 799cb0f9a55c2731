package io.kvcache.tiers.directory;

import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import io.kvcache.tiers.disk.LogHeader;
import io.kvcache.tiers.os.ByteSizeFormat;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// What is wrong with a directory, found out without changing anything. Each check throws a
/// [DiskDirectoryException].
///
/// @param folder the directory
/// @param file the file of the tier in it
/// @param bytes that are asked for, whole pages
record DirectoryCheck(Path folder, Path file, long bytes) {

    /// What callers can do about a file that is refused: those of the server and those of the library.
    static final String ADVICE = "name another directory; or, to lose what is there and format it anew, set"
            + " 'on_incompatible: discard' for it under 'disks:' of the server's configuration"
            + " (embedded: DiskOptions.withOnIncompatible(OnIncompatible.DISCARD))";

    /// What is to be done with the file that is there.
    enum FileAction {
        /// There is none, or none that anything was written to.
        CREATE,
        /// It holds a tier of this format and size.
        USE,
        /// It holds something else, and is to be discarded.
        DISCARD
    }

    /// Looks at everything.
    FileAction check(OnIncompatible onIncompatible) {
        try {
            requireFolder();
            return checkFile(onIncompatible);
        } catch (IOException failure) {
            throw new DiskDirectoryException(
                    folder, "it cannot be looked at: " + FileErrorMessage.of(failure, folder.toString()), failure);
        }
    }

    /// A tier of so many bytes can be laid out.
    static long requireBytes(Path folder, long bytes) {
        if (bytes < DiskGeometry.MIN_DEVICE_BYTES) {
            throw new DiskDirectoryException(
                    folder,
                    "%s are too few; a tier takes at least %s"
                            .formatted(
                                    ByteSizeFormat.format(Math.max(0, bytes)),
                                    ByteSizeFormat.format(DiskGeometry.MIN_DEVICE_BYTES)));
        }
        return bytes / DiskGeometry.PAGE_BYTES * DiskGeometry.PAGE_BYTES;
    }

    /// Whether nothing was ever written to a file of the right size.
    boolean isBlank() throws IOException {
        return LogHeader.read(file).summary() == null;
    }

    private void requireFolder() {
        Path nearest = nearestExistingFolder();
        if (!Files.isDirectory(nearest)) {
            String what = nearest.equals(folder) ? "it is a file" : nearest + " is a file";
            throw new DiskDirectoryException(folder, what + "; name a directory");
        }
        if (!Files.isWritable(nearest) || !Files.isExecutable(nearest)) {
            String what = nearest.equals(folder) ? "it" : "it is not there, and " + nearest;
            throw new DiskDirectoryException(
                    folder, what + " cannot be written to by this user; check its owner and mode");
        }
    }

    /// The directory itself, or the nearest above it that is there.
    private Path nearestExistingFolder() {
        Path nearest = folder.toAbsolutePath();
        Path parent = nearest.getParent();
        while (!Files.exists(nearest) && parent != null) {
            nearest = parent;
            parent = nearest.getParent();
        }
        return nearest.equals(folder.toAbsolutePath()) ? folder : nearest;
    }

    private FileAction checkFile(OnIncompatible onIncompatible) throws IOException {
        if (!Files.exists(file)) {
            requireSpace(0);
            return FileAction.CREATE;
        }
        if (!Files.isRegularFile(file)) {
            throw new DiskDirectoryException(folder, file + " is no file; remove it, or name another directory");
        }
        long size = Files.size(file);
        if (size == 0) {
            return FileAction.CREATE;
        }
        String wrong = incompatibility(LogHeader.read(file), size);
        if (wrong.isEmpty()) {
            return FileAction.USE;
        }
        if (onIncompatible == OnIncompatible.REFUSE) {
            throw new DiskDirectoryException(folder, wrong + "; " + ADVICE);
        }
        requireSpace(size);
        return FileAction.DISCARD;
    }

    /// Why the file is none of this format and size; empty when it is.
    private String incompatibility(LogHeader header, long size) {
        LogHeader.TierSummary tierSummary = header.summary();
        if (tierSummary != null && tierSummary.geometry().deviceBytes() > size) {
            return "%s is truncated: it has %d bytes of %d"
                    .formatted(file, size, tierSummary.geometry().deviceBytes());
        }
        if (header.formatError() != null) {
            return "%s: %s".formatted(file, header.formatError().message());
        }
        if (size != bytes) {
            return "%s has %s, asked for are %s; ask for as many"
                    .formatted(file, ByteSizeFormat.format(size), ByteSizeFormat.format(bytes));
        }
        return "";
    }

    /// There is room, counting what goes.
    private void requireSpace(long heldBytes) throws IOException {
        long usable = Files.getFileStore(nearestExistingFolder()).getUsableSpace() + heldBytes;
        if (usable < bytes) {
            throw new DiskDirectoryException(
                    folder,
                    "it was asked for %s, and its file system has only %s left; ask for less, or free space there"
                            .formatted(ByteSizeFormat.format(bytes), ByteSizeFormat.format(usable)));
        }
    }
}
