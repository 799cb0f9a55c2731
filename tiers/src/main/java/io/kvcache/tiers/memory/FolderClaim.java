package io.kvcache.tiers.memory;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// The right to a folder of files in memory, which one store at a time has: a lock on a file in it, which
/// ends with the process at the latest.
///
/// Whoever gets it removes what an earlier store left there that was killed. Processes that have those
/// files mapped keep what they have: a file without a name stays as it is until its last mapping goes.
final class FolderClaim implements AutoCloseable {

    private static final String LOCK = "lock";

    /// The names that [ShmFile] gives.
    private static final Pattern FILE = Pattern.compile("(slots|records)-[0-9]+-[0-9]+");

    private static final FileAttribute<Set<PosixFilePermission>> OWNER_ONLY =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

    private static final Set<OpenOption> READ_WRITE = Set.of(
            StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE, LinkOption.NOFOLLOW_LINKS);

    private final FileChannel lock;

    private FolderClaim(FileChannel lock) {
        this.lock = lock;
    }

    /// Claims a private folder that exists, and empties it.
    ///
    /// @throws IllegalStateException when another store has it
    static FolderClaim take(Reservation wanted, Path folder) throws IOException {
        FileChannel channel = FileChannel.open(folder.resolve(LOCK), READ_WRITE, OWNER_ONLY);
        try {
            if (lock(channel) == null) {
                throw wanted.failed(folder + " belongs to another store that runs; name another");
            }
            removeLeftovers(folder);
            return new FolderClaim(channel);
        } catch (IOException | RuntimeException refused) {
            channel.close();
            throw refused;
        }
    }

    private static @Nullable FileLock lock(FileChannel channel) throws IOException {
        try {
            return channel.tryLock();
        } catch (OverlappingFileLockException here) {
            return null; // by another store of this process
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
            lock.close();
        } catch (IOException _) {
            // The lock ends with the process at the latest.
        }
    }
}
