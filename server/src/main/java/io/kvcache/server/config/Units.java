package io.kvcache.server.config;

import java.math.BigDecimal;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Numbers with units as people write them, in files and on command lines: `64GiB`, `1.5 TB`, `4096`, `90s`.
public final class Units {

    /// The formats that [#bytes] takes.
    public static final String SIZE_FORMATS =
            "a number with B, KiB, MiB, GiB, TiB (powers of 1024) or KB, MB, GB, TB (powers of 1000)";

    /// The formats that [#millis] takes.
    public static final String TIME_FORMATS = "a number with ms, s, m or h";

    private static final Pattern NUMBER_AND_UNIT = Pattern.compile("(\\d+(?:\\.\\d+)?)\\s*([A-Za-z]*)");
    private static final Map<String, Long> SIZES = Map.of(
            "", 1L,
            "b", 1L,
            "kib", 1L << 10,
            "mib", 1L << 20,
            "gib", 1L << 30,
            "tib", 1L << 40,
            "kb", 1_000L,
            "mb", 1_000_000L,
            "gb", 1_000_000_000L,
            "tb", 1_000_000_000_000L);
    private static final Map<String, Long> TIMES =
            Map.of("ms", 1L, "s", 1_000L, "m", 60_000L, "min", 60_000L, "h", 3_600_000L);

    private Units() {}

    /// Bytes, in upper or lower case, rounded down; empty for another text, or for more than 2^63 - 1.
    public static OptionalLong bytes(String text) {
        return scaled(text, SIZES);
    }

    /// Milliseconds; empty for another text.
    public static OptionalLong millis(String text) {
        return scaled(text, TIMES);
    }

    private static OptionalLong scaled(String text, Map<String, Long> units) {
        Matcher form = NUMBER_AND_UNIT.matcher(text.strip());
        Long unit = form.matches() ? units.get(form.group(2).toLowerCase(Locale.ROOT)) : null;
        if (unit == null) {
            return OptionalLong.empty();
        }
        BigDecimal value = new BigDecimal(form.group(1)).multiply(new BigDecimal(unit));
        return value.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0
                ? OptionalLong.empty()
                : OptionalLong.of(value.longValue());
    }
}
