package io.kvcache.server.access;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Set;

/// A file with passwords or secrets, one a line.
public final class SecretFile {

    private static final int MOST_BYTES = 64 << 10;

    private static final Set<PosixFilePermission> OWNERS =
            Set.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE);

    private SecretFile() {}

    /// As [#lines], of a file that its owner alone may read and write, as it has what is secret in the
    /// clear.
    public static List<String> ownLines(String setting, String file, String what) throws IOException {
        Set<PosixFilePermission> given = modes(Path.of(file));
        if (!OWNERS.containsAll(given)) {
            throw new IOException(setting + " " + file + " has mode " + PosixFilePermissions.toString(given)
                    + "; it takes a file for its owner alone, rw------- or r--------");
        }
        return lines(setting, file, what);
    }

    /// None where a file has no modes, or is not there, which is said when it is read.
    private static Set<PosixFilePermission> modes(Path file) {
        try {
            return Files.getPosixFilePermissions(file);
        } catch (IOException | UnsupportedOperationException none) {
            return Set.of();
        }
    }

    /// Its lines that are not blank, at least one.
    ///
    /// @param setting that names the file, for messages
    /// @param what is in it, for messages
    /// @throws IOException when it cannot be used; the message names the setting and the file, never what is in it
    public static List<String> lines(String setting, String file, String what) throws IOException {
        Path path = Path.of(file);
        List<String> lines;
        try {
            if (Files.size(path) > MOST_BYTES) {
                throw new IOException("it takes up to " + MOST_BYTES + " bytes");
            }
            lines = Files.readAllLines(path, StandardCharsets.UTF_8).stream()
                    .filter(line -> !line.isBlank())
                    .toList();
        } catch (IOException unreadable) {
            throw new IOException(setting + " " + file + " cannot be read: " + unreadable, unreadable);
        }
        if (lines.isEmpty()) {
            throw new IOException(setting + " " + file + " has no " + what);
        }
        return lines;
    }
}
