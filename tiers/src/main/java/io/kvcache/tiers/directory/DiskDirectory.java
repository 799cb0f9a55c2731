package io.kvcache.tiers.directory;

import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.disk.LogHeader;
import io.kvcache.tiers.disk.LogHeader.FormatError;
import io.kvcache.tiers.options.OnIncompatible;
import io.kvcache.tiers.os.ByteSizeFormat;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/// An opened directory that holds one disk tier: the device, and how its log is to be opened.
///
/// ```
/// DIR/tier     the tier, of its full size from the start, mode 0600
/// DIR/lock     the process that has it open, mode 0600; it stays after the close
/// ```
///
/// A directory with other files is refused, `lost+found` of a mount point apart.
/// A directory that is not there is made, with mode 0700. A file system that cannot reserve space, or that
/// refuses O_DIRECT or io_uring, does too: the log of [FileDevice] says so once, and [BlockDevice#describe]
/// at any time.
///
/// **Ownership.** Closing it closes the device and lets go of the directory. It is closed when the log on it is
/// no longer ticked, by the thread that ticked it.
///
/// **Threads.** Opening and [#openFailure] by any; closing as [BlockDevice].
public final class DiskDirectory implements AutoCloseable {

    /// Operations in flight at a time: an NVMe disk is busy with blocks of 64 KiB then.
    private static final int DEPTH = 64;

    private static final Logger LOG = System.getLogger(DiskDirectory.class.getName());

    private static final String FILE = "tier";

    /// Entries that a directory may have; `lost+found` is there where a file system is mounted, `cluster.drops`
    /// where a server is in a cluster.
    private static final Set<String> OWN_FILES =
            Set.of(FILE, DirectoryLock.FILE, "lost+found", "cluster.drops", "cluster.drops.new");

    private final Path folder;
    private final DirectoryLock lock;
    private final BlockDevice device;
    private final DiskLogConfig config;

    private DiskDirectory(Path folder, DirectoryLock lock, BlockDevice device, DiskLogConfig config) {
        this.folder = folder;
        this.lock = lock;
        this.device = device;
        this.config = config;
    }

    /// Opens a directory for a tier of the given size; makes what is missing.
    ///
    /// @param bytes of the tier, rounded down to whole pages
    /// @throws DiskDirectoryException when the directory cannot be used, with nothing changed: it is open already,
    ///     here or elsewhere; it is not a directory, cannot be created or not be written to; it has files that are
    ///     not the tier's; there are too few bytes, or more than its file system has left; it holds a tier of
    ///     another size or format version, one that is truncated or damaged, or something else, and the options do
    ///     not say to discard that
    /// @throws IllegalStateException when the JVM refuses native access; names the flag that allows it
    public static DiskDirectory open(Path folder, long bytes, DirectoryOptions options) {
        Path file = folder.resolve(FILE);
        DirectoryCheck directoryCheck = new DirectoryCheck(folder, file, DirectoryCheck.requireBytes(folder, bytes));
        directoryCheck.requireOwnFiles();
        directoryCheck.requireOutsideTiers();
        DirectoryCheck.FileAction first = directoryCheck.check(options.onIncompatible());
        createFolder(folder);
        DirectoryLock lock = DirectoryLock.acquire(folder);
        try {
            Opening opening = directoryCheck.describeOpening();
            if (first != DirectoryCheck.FileAction.USE) {
                removeFile(directoryCheck, options);
            }
            DiskDirectory directory = open(directoryCheck, lock, options, true);
            opening.log(directory.device.describe());
            return directory;
        } catch (IOException failure) {
            lock.close();
            throw new DiskDirectoryException(folder, FileErrorMessage.of(failure, folder.toString()), failure);
        } catch (RuntimeException failure) {
            lock.close();
            throw failure;
        }
    }

    /// Looks whether a directory could be opened for a tier of the given size, as far as that shows without
    /// changing anything: the process that has it open does not.
    ///
    /// @throws DiskDirectoryException as [#open]
    public static void checkUsable(Path folder, long bytes, OnIncompatible onIncompatible) {
        DirectoryCheck directoryCheck =
                new DirectoryCheck(folder, folder.resolve(FILE), DirectoryCheck.requireBytes(folder, bytes));
        directoryCheck.requireOwnFiles();
        directoryCheck.requireOutsideTiers();
        var _ = directoryCheck.check(onIncompatible);
    }

    /// Checks that no directory is another one of these, or lies in it, whatever links lead there. Each would open
    /// once; then what lies in the outer one is a foreign file.
    ///
    /// @throws DiskDirectoryException that names both
    public static void requireApart(List<Path> folders) {
        for (int i = 0; i < folders.size(); i++) {
            for (Path other : folders.subList(0, i)) {
                requireApart(folders.get(i), other);
            }
        }
    }

    private static void requireApart(Path one, Path other) {
        if (resolve(one).equals(resolve(other))) {
            throw new DiskDirectoryException(
                    one, "it is the directory of another disk, " + other + "; name one for each");
        }
        for (Path inner : List.of(one, other)) {
            Path outer = inner.equals(one) ? other : one;
            if (isWithin(inner, outer)) {
                throw lies(inner, outer, "the directory of another disk");
            }
        }
    }

    /// Returns whether a file or directory is or will be in a directory, whatever links lead there.
    public static boolean isWithin(Path file, Path folder) {
        return resolve(file).startsWith(resolve(folder));
    }

    /// Returns the path without links, also of what does not exist yet.
    private static Path resolve(Path file) {
        Path absolute = file.toAbsolutePath();
        Path nearest = nearestExisting(absolute);
        try {
            return nearest.toRealPath().resolve(nearest.relativize(absolute)).normalize();
        } catch (IOException unreadable) {
            return absolute.normalize();
        }
    }

    private static DiskDirectoryException lies(Path inner, Path outer, String what) {
        return new DiskDirectoryException(
                inner,
                "it lies in %s, %s, which may hold nothing else; name a directory beside that one"
                        .formatted(outer, what));
    }

    /// Opens a directory that holds a tier, of whatever size that has.
    ///
    /// @throws DiskDirectoryException as [#open], and when there is no tier; nothing has changed then
    public static DiskDirectory openExisting(Path folder, DirectoryOptions options) {
        Path file = folder.resolve(FILE);
        if (!Files.isRegularFile(file)) {
            throw noTier(folder);
        }
        DirectoryLock lock = DirectoryLock.acquire(folder);
        try {
            DirectoryCheck directoryCheck = new DirectoryCheck(folder, file, Files.size(file));
            if (directoryCheck.check(OnIncompatible.REFUSE) != DirectoryCheck.FileAction.USE
                    || directoryCheck.isBlank()) {
                throw noTier(folder);
            }
            Opening opening = directoryCheck.describeOpening();
            DiskDirectory directory = open(directoryCheck, lock, options, false);
            opening.log(directory.device.describe());
            return directory;
        } catch (IOException failure) {
            lock.close();
            throw new DiskDirectoryException(folder, FileErrorMessage.of(failure, folder.toString()), failure);
        } catch (RuntimeException failure) {
            lock.close();
            throw failure;
        }
    }

    /// What the log says of an opening: a tier that was found, or why there is a new one.
    private record Opening(Level level, String text) {

        void log(String device) {
            LOG.log(level, text + " (" + device + ")");
        }
    }

    /// Returns an absolute path itself, or the nearest of its parents that exists.
    public static Path nearestExisting(Path folder) {
        Path nearest = folder;
        Path parent = nearest.getParent();
        while (!Files.exists(nearest) && parent != null) {
            nearest = parent;
            parent = nearest.getParent();
        }
        return nearest;
    }

    private static DiskDirectoryException noTier(Path folder) {
        if (Files.isRegularFile(folder)) {
            Path parent = folder.toAbsolutePath().getParent();
            return new DiskDirectoryException(folder, "it is a file; name the directory that it is in, " + parent);
        }
        return new DiskDirectoryException(
                folder,
                Files.isDirectory(folder)
                        ? "there is no disk tier in it; name a directory that has one"
                        : "the directory " + folder.toAbsolutePath()
                                + " does not exist; name one that has a disk tier");
    }

    private static void createFolder(Path folder) {
        try {
            Files.createDirectories(
                    folder.toAbsolutePath(),
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        } catch (IOException failure) {
            throw new DiskDirectoryException(
                    folder,
                    "it cannot be made: "
                            + FileErrorMessage.of(
                                    failure, folder.toAbsolutePath().toString()),
                    failure);
        }
    }

    /// Removes a file that is to be made anew; an empty one too, whose space a process reserved that was killed.
    /// Looks again first, since the directory was not locked before.
    private static void removeFile(DirectoryCheck directoryCheck, DirectoryOptions options) throws IOException {
        if (directoryCheck.check(options.onIncompatible()) != DirectoryCheck.FileAction.USE) {
            Files.deleteIfExists(directoryCheck.file());
            directoryCheck.check(options.onIncompatible());
        }
    }

    private static DiskDirectory open(
            DirectoryCheck directoryCheck, DirectoryLock lock, DirectoryOptions options, boolean create)
            throws IOException {
        BlockDevice device = FileDevice.open(FileDeviceOptions.of(directoryCheck.file(), directoryCheck.bytes())
                .withDepth(DEPTH)
                .withDirect(options.directIo())
                .withEngine(options.engine())
                .withCreate(create));
        // A device id that can be guessed lets a client hide what looks like metadata in a block.
        DiskLogConfig config = DiskLogConfig.of(DiskGeometry.of(directoryCheck.bytes()), new SecureRandom().nextLong())
                .withOnIncompatible(options.onIncompatible())
                .withLimits(options.limits())
                .withReclaim(options.reclaim());
        return new DiskDirectory(directoryCheck.folder(), lock, device, config.withStaging(options.coding()));
    }

    /// The directory.
    public Path folder() {
        return folder;
    }

    /// The device, which this object closes.
    public BlockDevice device() {
        return device;
    }

    /// How a log is opened on the device; for a device that is blank, with an id that was never used.
    public DiskLogConfig config() {
        return config;
    }

    /// For a log on this directory that did not get to serve: why, in the words of [#open]. Its state is
    /// [TierState#REFUSED] or [TierState#FAILED].
    public DiskDirectoryException openFailure(DiskLog log) {
        return openFailure(folder, log);
    }

    /// Likewise, of a directory that may be closed by now.
    public static DiskDirectoryException openFailure(Path folder, DiskLog log) {
        FormatError formatError = log.formatError();
        String why = formatError == null ? log.cause() : formatError.message();
        String advice = log.state() == TierState.REFUSED
                ? DirectoryCheck.ADVICE
                : "check the disk (dmesg, SMART), or name another directory";
        return new DiskDirectoryException(folder, why + "; " + advice);
    }

    /// Closes the device and lets go of the directory.
    ///
    /// @throws IllegalStateException as [BlockDevice#close]; the directory stays taken then
    @Override
    public void close() {
        device.close();
        lock.close();
    }

    /// Checks of a directory, without changing anything. Each throws a [DiskDirectoryException].
    ///
    /// @param folder the directory
    /// @param file the file of the tier in it
    /// @param bytes requested size, whole pages
    private record DirectoryCheck(Path folder, Path file, long bytes) {

        /// Advice on a file that is refused, to callers of the server and of the library.
        static final String ADVICE = "name another directory; or, to lose what is there and format it anew, set"
                + " 'on_incompatible: discard' for it under 'disks:' of the server's configuration"
                + " (embedded: DiskOptions.withOnIncompatible(OnIncompatible.DISCARD))";

        /// Action on the file that is there.
        enum FileAction {
            /// The file does not exist, or nothing was written to it.
            CREATE,
            /// It holds a tier of this format and size.
            USE,
            /// It holds something else, and is to be discarded.
            DISCARD
        }

        /// Runs all checks and returns the action on the file.
        FileAction check(OnIncompatible onIncompatible) {
            try {
                requireFolder();
                return checkFile(onIncompatible);
            } catch (IOException failure) {
                throw unreadable(failure);
            }
        }

        private DiskDirectoryException unreadable(Exception failure) {
            return new DiskDirectoryException(
                    folder, "it cannot be read: " + FileErrorMessage.of(failure, folder.toString()), failure);
        }

        /// Checks that an existing directory holds nothing besides the tier: `discard` never removes other files.
        void requireOwnFiles() {
            if (!Files.isDirectory(folder)) {
                return;
            }
            try (Stream<Path> entries = Files.list(folder)) {
                Optional<String> foreign = entries.map(
                                each -> each.getFileName().toString())
                        .filter(each -> !OWN_FILES.contains(each))
                        .min(Comparator.naturalOrder());
                if (foreign.isPresent()) {
                    throw new DiskDirectoryException(
                            folder,
                            "it has other files, %s for one; name an empty directory or one that does not exist yet,"
                                            .formatted(foreign.get())
                                    + " or move those files elsewhere");
                }
            } catch (IOException | UncheckedIOException failure) {
                throw unreadable(failure);
            }
        }

        /// Checks that no directory above holds a tier: that one could not be opened again with this one in it.
        void requireOutsideTiers() {
            for (Path above = resolve(folder).getParent(); above != null; above = above.getParent()) {
                if (Files.isRegularFile(above.resolve(FILE)) && Files.exists(above.resolve(DirectoryLock.FILE))) {
                    throw lies(folder, above, "a directory that holds another disk tier");
                }
            }
        }

        /// Checks that a tier of this size can be laid out, and returns the size in whole pages.
        static long requireBytes(Path folder, long bytes) {
            if (bytes < DiskGeometry.MIN_DEVICE_BYTES) {
                throw new DiskDirectoryException(
                        folder,
                        "its size is %s; allowed: at least %s"
                                .formatted(
                                        ByteSizeFormat.format(Math.max(0, bytes)),
                                        ByteSizeFormat.format(DiskGeometry.MIN_DEVICE_BYTES)));
            }
            return bytes / DiskGeometry.PAGE_BYTES * DiskGeometry.PAGE_BYTES;
        }

        /// Returns what an opening finds, before it changes anything. A file that lost its contents is a warning.
        Opening describeOpening() throws IOException {
            String tier = " a new tier of %s in %s".formatted(ByteSizeFormat.format(bytes), folder);
            if (!Files.exists(file)) {
                return new Opening(Level.INFO, "Made" + tier);
            }
            long size = Files.size(file);
            if (size == 0) {
                return new Opening(Level.WARNING, file + " was empty, perhaps truncated; made" + tier);
            }
            LogHeader header = LogHeader.read(file);
            String wrong = incompatibility(header, size);
            LogHeader.TierSummary found = header.summary();
            if (!wrong.isEmpty()) {
                return new Opening(Level.WARNING, wrong + "; discarded it (on_incompatible: discard) and made" + tier);
            }
            if (found == null) {
                return new Opening(Level.WARNING, file + " had no superblock and no blocks; made" + tier);
            }
            String opened = "Opened %s: %s, %s namespaces"
                    .formatted(
                            file,
                            ByteSizeFormat.format(size),
                            found.namespaces().size());
            return header.intactCopies() == 2
                    ? new Opening(Level.INFO, opened)
                    : new Opening(
                            Level.WARNING,
                            opened + "; one of its two superblocks was not readable, and this opening writes it anew."
                                    + " If the last server was not killed, check the disk (dmesg, SMART)");
        }

        /// Returns whether nothing was ever written to a file of the right size.
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
                String what = nearest.equals(folder) ? "it" : "it does not exist, and " + nearest;
                throw new DiskDirectoryException(
                        folder, what + " cannot be written to by this user; check its owner and mode");
            }
        }

        /// Returns the directory itself, or its nearest existing parent.
        private Path nearestExistingFolder() {
            Path nearest = nearestExisting(folder.toAbsolutePath());
            return nearest.equals(folder.toAbsolutePath()) ? folder : nearest;
        }

        private FileAction checkFile(OnIncompatible onIncompatible) throws IOException {
            if (!Files.exists(file)) {
                requireSpace(0);
                return FileAction.CREATE;
            }
            if (!Files.isRegularFile(file)) {
                throw new DiskDirectoryException(
                        folder, file + " is not a regular file; remove it, or name another directory");
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

        /// Returns why the file is not of this format and size; empty when it is.
        private String incompatibility(LogHeader header, long size) {
            LogHeader.TierSummary tierSummary = header.summary();
            if (tierSummary != null && tierSummary.geometry().deviceBytes() > size) {
                return "%s is truncated: it has %s bytes of %s"
                        .formatted(file, size, tierSummary.geometry().deviceBytes());
            }
            if (header.formatError() != null) {
                return "%s: %s".formatted(file, header.formatError().message());
            }
            if (size != bytes) {
                return "%s has %s, but the configured size is %s; configure the size of the file"
                        .formatted(file, ByteSizeFormat.format(size), ByteSizeFormat.format(bytes));
            }
            return "";
        }

        /// Checks that the file system has room, counting the bytes of the discarded file.
        private void requireSpace(long heldBytes) throws IOException {
            long usable = Files.getFileStore(nearestExistingFolder()).getUsableSpace() + heldBytes;
            if (usable < bytes) {
                throw new DiskDirectoryException(
                        folder,
                        "its size is %s, but its file system has only %s left; configure less, or free space there"
                                .formatted(ByteSizeFormat.format(bytes), ByteSizeFormat.format(usable)));
            }
        }
    }

    /// How a [DiskDirectory] is opened.
    ///
    /// @param onIncompatible whether a file is discarded that is not a disk tier of this format and size
    /// @param directIo whether the page cache is bypassed
    /// @param engine how the kernel is asked
    /// @param limits of the log
    /// @param reclaim rules of the log
    /// @param coding whether bf16 values are written in three quarters of their bytes, without loss; what was
    ///     coded before is read either way
    public record DirectoryOptions(
            OnIncompatible onIncompatible,
            DirectIo directIo,
            IoBackendType engine,
            LogLimits limits,
            ReclaimConfig reclaim,
            boolean coding) {

        /// Refuses what is incompatible, on the best path there is.
        public static DirectoryOptions defaults() {
            return of(OnIncompatible.REFUSE, ReclaimConfig.defaults(), true);
        }

        /// On the best path there is.
        public static DirectoryOptions of(OnIncompatible onIncompatible, ReclaimConfig reclaim, boolean coding) {
            return new DirectoryOptions(
                    onIncompatible, DirectIo.AUTO, IoBackendType.AUTO, LogLimits.defaults(), reclaim, coding);
        }
    }
}
