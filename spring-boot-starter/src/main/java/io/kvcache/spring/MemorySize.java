package io.kvcache.spring;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// A size as the server's settings have it, such as `8GiB`. `8GB` is the same, as units count in powers of two
/// everywhere in Spring Boot.
public record MemorySize(long bytes) {

    private static final Pattern TEXT = Pattern.compile("(\\d{1,18}) ?(?:([KMGT])i?)?B", Pattern.CASE_INSENSITIVE);

    private static final String UNITS = "BKMGT";
    private static final int UNIT_BITS = 10;

    /// Reads a text; Spring Boot finds this method by its name.
    ///
    /// @throws IllegalArgumentException for another text; names it and the units
    public static MemorySize valueOf(String text) {
        Matcher parts = TEXT.matcher(text.strip());
        if (parts.matches()) {
            long number = Long.parseLong(parts.group(1));
            String unit = parts.group(2) == null ? "B" : parts.group(2).toUpperCase(Locale.ROOT);
            int bits = UNIT_BITS * UNITS.indexOf(unit);
            if (number <= Long.MAX_VALUE >> bits) {
                return new MemorySize(number << bits);
            }
        }
        throw new IllegalArgumentException("the size is '" + text
                + "'; it takes a whole number and one of the units B, KiB, MiB, GiB and TiB, as in 8GiB");
    }

    /// The size in the largest unit that leaves a whole number.
    @Override
    public String toString() {
        int unit = bytes == 0 ? 0 : Math.min(Long.numberOfTrailingZeros(bytes) / UNIT_BITS, UNITS.length() - 1);
        return (bytes >> (UNIT_BITS * unit)) + (unit == 0 ? "B" : UNITS.charAt(unit) + "iB");
    }
}
