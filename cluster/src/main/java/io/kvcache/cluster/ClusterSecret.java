package io.kvcache.cluster;

import io.kvcache.transport.wire.Secret;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/// A secret that the servers of one user on one host have in common, for a cluster on loopback: any user may connect to
/// loopback.
///
/// **The file** is made by the server that needs it first. Of several that start at once one makes it, as it appears
/// under its name with all of its bytes, and the others read that one. It counts only while it belongs to the user of
/// this process, and no other user may read or write it. Where it lies follows from the user alone, and not from the
/// environment, so that servers started by a log-in, a timer or a service find the same one.
///
/// **Threads.** Any.
public final class ClusterSecret implements ClusterProof {

    private static final String ALGORITHM = "HmacSHA256";
    private static final int RANDOM_BYTES = 32;
    private static final int MAX_BYTES = 4096;
    private static final Set<PosixFilePermission> OWNER_ONLY = PosixFilePermissions.fromString("rw-------");

    /// Belongs to the user of this process.
    private static final Path SELF =
            Path.of("/proc", Long.toString(ProcessHandle.current().pid()));

    private final Path file;
    private final Secret secret;

    private ClusterSecret(Path file, Secret secret) {
        this.file = file;
        this.secret = secret;
    }

    /// Returns where the secret of this process's user lies, in the home directory that the system knows.
    public static Path fileOfUser() {
        return Path.of(System.getProperty("user.home"), ".kvcache", "cluster.secret");
    }

    /// Reads the secret, and makes it before where there is none.
    ///
    /// @throws IOException when the file cannot be made or read, or another user may have made or read it. The
    ///     message names it and says why
    public static ClusterSecret open(Path file) throws IOException {
        if (Files.notExists(file, LinkOption.NOFOLLOW_LINKS)) {
            make(file);
        }
        return read(file);
    }

    /// Looks at a file that [#open] would use. Makes nothing.
    ///
    /// @throws IOException as [#open], where the file is there
    public static void check(Path file) throws IOException {
        if (!Files.notExists(file, LinkOption.NOFOLLOW_LINKS)) {
            read(file);
        }
    }

    private static void make(Path file) throws IOException {
        Path folder = file.toAbsolutePath().getParent();
        try {
            Files.createDirectories(folder, attribute("rwx------"));
            Path draft = Files.createTempFile(folder, "cluster", ".draft", attribute("rw-------"));
            try {
                write(
                        draft,
                        HexFormat.of().formatHex(Secret.random(RANDOM_BYTES).bytes()) + "\n");
                Files.createLink(file, draft);
            } catch (FileAlreadyExistsException faster) {
                // Another server has made it meanwhile; that one counts.
            } finally {
                Files.deleteIfExists(draft);
            }
        } catch (FileSystemException | UnsupportedOperationException unusable) {
            throw new IOException(
                    "%s cannot be made: %s; allowed: a home directory (%s) in which the server's user may write, on a file system with hard links"
                            .formatted(file, unusable.getMessage(), System.getProperty("user.home")),
                    unusable);
        }
    }

    private static FileAttribute<Set<PosixFilePermission>> attribute(String mode) {
        return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(mode));
    }

    private static void write(Path draft, String text) throws IOException {
        try (FileChannel channel = FileChannel.open(draft, StandardOpenOption.WRITE)) {
            ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
            channel.force(true);
        }
    }

    private static ClusterSecret read(Path file) throws IOException {
        try {
            requirePrivate(file);
            byte[] bytes = Files.readString(file).strip().getBytes(StandardCharsets.UTF_8);
            if (bytes.length < RANDOM_BYTES) {
                throw new IOException("%s has %s bytes; allowed: %s to %s. Delete it, and start all servers again"
                        .formatted(file, bytes.length, RANDOM_BYTES, MAX_BYTES));
            }
            return new ClusterSecret(file, new Secret(bytes));
        } catch (NoSuchFileException gone) {
            throw new IOException(file + " was deleted while it was read; start the server again", gone);
        } catch (FileSystemException unreadable) {
            throw new IOException(file + " cannot be read: " + unreadable, unreadable);
        }
    }

    private static void requirePrivate(Path file) throws IOException {
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) || Files.size(file) > MAX_BYTES) {
            throw new IOException(
                    "%s is no file of up to %s bytes; allowed: one, and no link".formatted(file, MAX_BYTES));
        }
        Object owner = Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS);
        Object user = Files.getAttribute(SELF, "unix:uid");
        if (!owner.equals(user)) {
            throw new IOException("%s belongs to user %s, and the server runs as user %s; allowed: a file of its own"
                    .formatted(file, owner, user));
        }
        Set<PosixFilePermission> given = Files.getPosixFilePermissions(file, LinkOption.NOFOLLOW_LINKS);
        if (!OWNER_ONLY.containsAll(given)) {
            throw new IOException(
                    "%s has mode %s, so other users may know the secret; allowed: rw------- or less. Delete it, and start all servers again"
                            .formatted(file, PosixFilePermissions.toString(given)));
        }
    }

    /// The file.
    public Path file() {
        return file;
    }

    /// Returns what proves to the other side of a connection that this one knows the secret:
    /// `HMAC-SHA256(secret, label ‖ parts)`, each with its length before it.
    byte[] proof(String label, List<byte[]> parts) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(secret.bytes(), ALGORITHM));
            update(mac, label.getBytes(StandardCharsets.US_ASCII));
            parts.forEach(part -> update(mac, part));
            return mac.doFinal();
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this JVM has no " + ALGORITHM, missing);
        }
    }

    private static void update(Mac mac, byte[] part) {
        mac.update(ByteBuffer.allocate(Integer.BYTES).putInt(part.length).flip());
        mac.update(part);
    }

    /// Returns the bytes of an address, which are the same at both sides of a connection over loopback.
    static byte[] bytesOf(InetSocketAddress address) {
        byte[] host = address.getAddress().getAddress();
        return ByteBuffer.allocate(host.length + Integer.BYTES)
                .put(host)
                .putInt(address.getPort())
                .array();
    }
}
