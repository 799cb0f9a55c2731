package io.kvcache.engines.llamacpp;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/// What a file says, as one number. All bytes are read, because a name or a date would not tell that they
/// have changed.
final class FileDigest {

    private FileDigest() {}

    /// @return SHA-256 in 64 hexadecimal digits
    /// @throws IOException when the file cannot be read
    static String of(Path file) throws IOException {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            try (OutputStream into = new DigestOutputStream(OutputStream.nullOutputStream(), digest)) {
                Files.copy(file, into);
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException("every JVM has SHA-256", impossible);
        }
    }
}
