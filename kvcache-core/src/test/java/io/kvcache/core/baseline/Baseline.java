package io.kvcache.core.baseline;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;

/// Compares lines of text with those that were recorded in the test resources of a module.
///
/// `./kvcache test --baseline` compares; `./kvcache test --record-baseline` writes the files again, for a change that
/// is meant to alter what the code does. Recorded lines hold values, never names of classes or fields, so a rename
/// leaves them alone.
public final class Baseline {

    /// The tag of tests that run for `--baseline` alone, as they take minutes.
    public static final String TAG = "baseline";

    /// The tag of tests of recorded values that are quick enough to run each time.
    public static final String RECORDED_TAG = "recorded";

    private static final boolean RECORD = Boolean.getBoolean("kvcache.baseline.record");

    private Baseline() {}

    /// Compares, or records.
    ///
    /// @param test whose package has the file
    /// @param file its name, such as `sim.txt`
    /// @throws AssertionError when a line differs; the message has the first that does
    public static void compare(Class<?> test, String file, List<String> lines) {
        try {
            if (RECORD) {
                Path path = Path.of("src/test/resources", test.getPackageName().replace('.', '/'), file);
                Files.createDirectories(path.getParent());
                Files.write(path, lines);
                System.out.println("baseline: recorded " + lines.size() + " lines in " + path);
                return;
            }
            assertThat(lines).as("%s, compared with the baseline", file).containsExactlyElementsOf(read(test, file));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static List<String> read(Class<?> test, String file) throws IOException {
        try (InputStream recorded = test.getResourceAsStream(file)) {
            assertThat(recorded).as("the baseline %s", file).isNotNull();
            return new String(recorded.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .toList();
        }
    }

    /// The first 64 bits of a text's SHA-256, in hexadecimal.
    public static String digest(String text) {
        try {
            byte[] all = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(all, 0, 8);
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError(impossible);
        }
    }
}
