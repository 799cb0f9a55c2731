package io.kvcache.tiers.memory;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.UUID;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// The right to a folder of files in memory, which one store at a time has: a lock on a file in it, which
/// ends with the process at the latest.
///
/// Who gives it up takes the lock's file away, and the folder if he made it. Somebody else may have opened
/// that file just before, and would lock what nobody else can find: so whoever has the lock writes a word
/// into the file and looks whether it is to be read under the name.
///
/// Whoever gets it removes what an earlier store left there that was killed. Processes that have those
/// files mapped keep what they have: a file without a name stays as it is until its last mapping goes.
final class FolderClaim implements AutoCloseable {

    private static final String LOCK = "lock";

    /// The names that [ShmFile] gives.
    private static final Pattern FILE = Pattern.compile("(slots|records|stage)-[0-9]+-[0-9]+");

    private static final FileAttribute<Set<PosixFilePermission>> OWNER_ONLY =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

    private static final Set<OpenOption> READ_WRITE = Set.of(
            StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE, LinkOption.NOFOLLOW_LINKS);

    private final FileChannel lock;
    private final Path folder;
    private final boolean made;

    private FolderClaim(FileChannel lock, Path folder, boolean made) {
        this.lock = lock;
        this.folder = folder;
        this.made = made;
    }

    /// Claims a private folder that exists, and empties it.
    ///
    /// @param made whether the caller has made it
    /// @throws IllegalStateException when another store has it
    static FolderClaim take(Reservation wanted, Path folder, boolean made) throws IOException {
        FileChannel channel = FileChannel.open(folder.resolve(LOCK), READ_WRITE, OWNER_ONLY);
        try {
            if (lock(channel) == null) {
                throw wanted.failed(folder + " belongs to another store that runs; name another");
            }
            if (!found(channel, folder.resolve(LOCK))) {
                throw wanted.failed(folder + " is just being given up by another store; try again");
            }
            removeLeftovers(folder);
            return new FolderClaim(channel, folder, made);
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

    /// Whether a locked file is the one of this name.
    private static boolean found(FileChannel locked, Path name) throws IOException {
        String word = UUID.randomUUID().toString();
        locked.truncate(0).write(ByteBuffer.wrap(word.getBytes(StandardCharsets.US_ASCII)), 0);
        try {
            return Files.readString(name, StandardCharsets.US_ASCII).equals(word);
        } catch (NoSuchFileException gone) {
            return false;
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
            if (made) {
                Files.deleteIfExists(folder);
            }
        } catch (IOException _) {
            // Somebody keeps something else in the folder.
        }
        try {
            lock.close();
        } catch (IOException _) {
            // The lock ends with the process at the latest.
        }
    }
}
