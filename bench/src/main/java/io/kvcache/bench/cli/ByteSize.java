package io.kvcache.bench.cli;

import java.math.BigDecimal;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// A number of bytes as people write it: `64GiB`, `1.5TB`, `4096`.
public record ByteSize(long bytes) {

    private static final String FORMS =
            "a positive number with B, KiB, MiB, GiB, TiB (powers of 1024) or KB, MB, GB, TB (powers of 1000)";
    private static final Pattern FORM = Pattern.compile("(\\d+(?:\\.\\d+)?)\\s*([A-Za-z]*)");
    private static final Map<String, Long> UNITS = Map.of(
            "", 1L,
            "b", 1L,
            "kib", 1L << 10,
            "mib", 1L << 20,
            "gib", 1L << 30,
            "tib", 1L << 40,
            "kb", 1000L,
            "mb", 1000_000L,
            "gb", 1000_000_000L,
            "tb", 1000_000_000_000L);

    /// Sizes are positive.
    public ByteSize {
        if (bytes < 1) {
            throw new IllegalArgumentException("size is " + bytes + " bytes, must be at least 1");
        }
    }

    /// Parses a size, in upper or lower case.
    ///
    /// @throws IllegalArgumentException that names the text and the forms allowed
    public static ByteSize parse(String text) {
        Matcher form = FORM.matcher(text.strip());
        Long unit = form.matches() ? UNITS.get(form.group(2).toLowerCase(Locale.ROOT)) : null;
        BigDecimal bytes =
                unit == null ? BigDecimal.ZERO : new BigDecimal(form.group(1)).multiply(new BigDecimal(unit));
        if (bytes.compareTo(BigDecimal.ONE) < 0 || bytes.compareTo(new BigDecimal(Long.MAX_VALUE)) > 0) {
            throw new IllegalArgumentException("'" + text + "' is not a size: must be " + FORMS);
        }
        return new ByteSize(bytes.longValue());
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
