package io.kvcache.engines.jlama;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;

/// What a model's files say, as one digest: SHA-256 over name and SHA-256 of its configuration and of
/// each file of weights, in the order of their names.
///
/// All bytes are read, because a name or a date would not tell that weights have changed, and then keys
/// and values of other weights would be taken for these.
final class WeightsDigest {

    private static final int BUFFER_BYTES = 1 << 20;

    private WeightsDigest() {}

    /// @return 64 hexadecimal digits
    /// @throws IOException when a file cannot be read, or there are no weights
    static String of(Path directory) throws IOException {
        List<Path> files;
        try (Stream<Path> all = Files.list(directory)) {
            files = all.filter(WeightsDigest::isPartOfModel).sorted().toList();
        }
        if (files.stream().noneMatch(WeightsDigest::isWeights)) {
            throw new IOException(directory + " has no *.safetensors");
        }
        MessageDigest whole = sha256();
        try {
            List<byte[]> digests =
                    files.parallelStream().map(WeightsDigest::digest).toList();
            for (int i = 0; i < files.size(); i++) {
                whole.update(name(files.get(i)).getBytes(StandardCharsets.UTF_8));
                whole.update((byte) 0);
                whole.update(digests.get(i));
            }
        } catch (UncheckedIOException unreadable) {
            throw unreadable.getCause();
        }
        return HexFormat.of().formatHex(whole.digest());
    }

    private static boolean isPartOfModel(Path file) {
        return isWeights(file) || name(file).equals("config.json");
    }

    private static boolean isWeights(Path file) {
        return name(file).endsWith(".safetensors");
    }

    private static String name(Path file) {
        return String.valueOf(file.getFileName());
    }

    private static byte[] digest(Path file) {
        MessageDigest digest = sha256();
        ByteBuffer buffer = ByteBuffer.allocate(BUFFER_BYTES);
        try (FileChannel channel = FileChannel.open(file)) {
            while (channel.read(buffer) >= 0) {
                digest.update(buffer.flip());
                buffer.clear();
            }
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
        return digest.digest();
    }

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException("every JVM has SHA-256", impossible);
        }
    }
}
