package io.kvcache.server.cli;

import io.kvcache.server.config.Units;
import java.util.Locale;

/// A number of bytes as people write it: `64GiB`, `1.5TB`, `4096`.
public record ByteSizeText(long bytes) {

    /// Sizes are positive.
    public ByteSizeText {
        if (bytes < 1) {
            throw new IllegalArgumentException("size is " + bytes + " bytes, must be at least 1");
        }
    }

    /// Parses a size, in upper or lower case.
    ///
    /// @throws IllegalArgumentException that names the text and the forms allowed
    public static ByteSizeText parse(String text) {
        long bytes = Units.bytes(text).orElse(0);
        if (bytes < 1) {
            throw new IllegalArgumentException(
                    "'" + text + "' is not a size: must be " + Units.SIZE_FORMATS + ", 1 B and up");
        }
        return new ByteSizeText(bytes);
    }

    /// In the largest power of 1024 that leaves at least one, to three digits or so: `62.5 GiB`.
    @Override
    public String toString() {
        String[] names = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
        int power = Math.min(5, (63 - Long.numberOfLeadingZeros(bytes)) / 10);
        double value = (double) bytes / (1L << (10 * power));
        String number = String.format(Locale.ROOT, value < 100 && power > 0 ? "%.1f" : "%.0f", value);
        return number.replaceFirst("\\.0$", "") + " " + names[power];
    }
}
