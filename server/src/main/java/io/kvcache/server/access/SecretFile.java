package io.kvcache.server.access;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// A file with passwords or secrets, one a line.
public final class SecretFile {

    private static final int MOST_BYTES = 64 << 10;

    private SecretFile() {}

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
