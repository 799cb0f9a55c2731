package io.kvcache.tiers.os;

import java.util.Locale;

/// Sizes in words.
public final class ByteSizeFormat {

    private ByteSizeFormat() {}

    /// `3.0 GiB (3221225472 bytes)`.
    public static String format(long bytes) {
        if (bytes < 1 << 10) {
            return bytes + " bytes";
        }
        int unit = (63 - Long.numberOfLeadingZeros(bytes)) / 10;
        double scaled = bytes / (double) (1L << (10 * unit));
        return String.format(Locale.ROOT, "%.1f %ciB (%d bytes)", scaled, "KMGTPE".charAt(unit - 1), bytes);
    }
}
