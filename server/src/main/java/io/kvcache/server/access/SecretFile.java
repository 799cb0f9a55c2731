package io.kvcache.server.access;

import io.kvcache.tiers.directory.FileErrorMessage;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/// A file with passwords or secrets, one a line.
public final class SecretFile {

    private static final int MAX_BYTES = 64 << 10;

    private static final Set<PosixFilePermission> OWNER_PERMISSIONS = EnumSet.of(
            PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE);

    /// Root's name, where it has one.
    private static final Set<String> ROOT_NAMES = Set.of("root", "0");

    private SecretFile() {}

    /// As [#readLines], of a file that its owner alone may read and write, as it has what is secret in the
    /// clear. A file of root's its group may read as well: that is how a container is handed one.
    public static List<String> readPrivateLines(String setting, String file, String what) throws IOException {
        String mode = permissiveMode(Path.of(file));
        if (!mode.isEmpty()) {
            throw new IOException(setting + " " + file + " has mode " + mode
                    + "; it takes rw------- or less, and of root's rw-r----- or less: chmod 600 " + file);
        }
        return readLines(setting, file, what);
    }

    /// Returns the mode of a file that other users may read, else an empty text. The text is also empty where the
    /// file system has no modes, or the file does not exist; reading it reports that.
    private static String permissiveMode(Path file) {
        try {
            Set<PosixFilePermission> given = Files.getPosixFilePermissions(file);
            Set<PosixFilePermission> allowed = EnumSet.copyOf(OWNER_PERMISSIONS);
            if (ROOT_NAMES.contains(Files.getOwner(file).getName())) {
                allowed.add(PosixFilePermission.GROUP_READ);
            }
            return allowed.containsAll(given) ? "" : PosixFilePermissions.toString(given);
        } catch (IOException | UnsupportedOperationException none) {
            return "";
        }
    }

    /// Its lines that are not blank, at least one.
    ///
    /// @param setting that names the file, for messages
    /// @param what is in it, for messages
    /// @throws IOException when it cannot be used; the message names the setting and the file, never what is in it
    public static List<String> readLines(String setting, String file, String what) throws IOException {
        Path path = Path.of(file);
        List<String> lines;
        try {
            if (Files.size(path) > MAX_BYTES) {
                throw new IOException("it takes up to " + MAX_BYTES + " bytes");
            }
            lines = Files.readAllLines(path, StandardCharsets.UTF_8).stream()
                    .filter(line -> !line.isBlank())
                    .toList();
        } catch (IOException unreadable) {
            throw new IOException(
                    setting + " " + file + " cannot be read: " + FileErrorMessage.of(unreadable, file), unreadable);
        }
        if (lines.isEmpty()) {
            throw new IOException(setting + " " + file + " has no " + what);
        }
        return lines;
    }
}
