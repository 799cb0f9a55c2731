package io.kvcache.server.config;

import io.netty.util.NetUtil;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Texts of a configuration as values. Each method throws `IllegalArgumentException` that says what it takes.
final class Values {

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

    private Values() {}

    static int integer(String text) {
        try {
            return Integer.parseInt(text.strip());
        } catch (NumberFormatException notOne) {
            throw new IllegalArgumentException("it takes a whole number", notOne);
        }
    }

    static boolean truth(String text) {
        return switch (text.strip().toLowerCase(Locale.ROOT)) {
            case "true" -> true;
            case "false" -> false;
            default -> throw new IllegalArgumentException("it takes true or false");
        };
    }

    static long bytes(String text) {
        return scaled(text, SIZES, "a number with B, KiB, MiB, GiB, TiB (powers of 1024) or KB, MB, GB, TB");
    }

    static Duration duration(String text) {
        return text.strip().equals("0")
                ? Duration.ZERO
                : Duration.ofMillis(scaled(text, TIMES, "0, or a number with ms, s, m or h"));
    }

    private static long scaled(String text, Map<String, Long> units, String forms) {
        Matcher form = NUMBER_AND_UNIT.matcher(text.strip());
        Long unit = form.matches() ? units.get(form.group(2).toLowerCase(Locale.ROOT)) : null;
        BigDecimal value =
                unit == null ? BigDecimal.valueOf(-1) : new BigDecimal(form.group(1)).multiply(new BigDecimal(unit));
        if (value.signum() < 0 || value.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0) {
            throw new IllegalArgumentException("it takes " + forms);
        }
        return value.longValue();
    }

    /// A network as `10.0.0.0/8`, or one address.
    static String cidr(String text) {
        String stripped = text.strip();
        int slash = stripped.indexOf('/');
        String address = slash < 0 ? stripped : stripped.substring(0, slash);
        boolean six = NetUtil.isValidIpV6Address(address);
        int longest = six ? 128 : 32;
        int prefix = slash < 0 ? longest : prefix(stripped.substring(slash + 1));
        if ((!six && !NetUtil.isValidIpV4Address(address)) || prefix < 0 || prefix > longest) {
            throw new IllegalArgumentException("it takes networks as 10.0.0.0/8 or fd00::/8");
        }
        return address + "/" + prefix;
    }

    private static int prefix(String text) {
        return text.matches("\\d{1,3}") ? Integer.parseInt(text) : -1;
    }

    /// A constant by its name, in lower case and with dashes for underscores.
    static <E extends Enum<E>> E choice(Class<E> type, String text) {
        String name = text.strip().toUpperCase(Locale.ROOT).replace('-', '_');
        for (E each : type.getEnumConstants()) {
            if (each.name().equals(name)) {
                return each;
            }
        }
        List<String> names = Arrays.stream(type.getEnumConstants())
                .map(each -> each.name().toLowerCase(Locale.ROOT).replace('_', '-'))
                .toList();
        throw new IllegalArgumentException("it takes " + String.join(", ", names));
    }
}
