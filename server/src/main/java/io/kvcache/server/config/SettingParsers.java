package io.kvcache.server.config;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.netty.util.NetUtil;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;

/// Texts of a configuration as values. Each method throws `IllegalArgumentException` that says what it takes.
final class SettingParsers {

    private SettingParsers() {}

    /// Reports all problems at once, one a line.
    ///
    /// @throws IllegalArgumentException unless there are none
    static void requireNone(List<String> problems) {
        if (!problems.isEmpty()) {
            throw new IllegalArgumentException(String.join("\n", problems));
        }
    }

    /// A whole number; whether it is in its range is checked with all else of its record.
    static Function<String, Integer> integerParser(int least, int most) {
        return text -> {
            try {
                return Integer.valueOf(text.strip());
            } catch (NumberFormatException notOne) {
                throw new IllegalArgumentException("it takes a whole number, " + least + " to " + most, notOne);
            }
        };
    }

    static boolean parseBoolean(String text) {
        return switch (text.strip().toLowerCase(Locale.ROOT)) {
            case "true" -> true;
            case "false" -> false;
            default -> throw new IllegalArgumentException("it takes true or false");
        };
    }

    static long parseBytes(String text) {
        return Units.bytes(text).orElseThrow(() -> new IllegalArgumentException("it takes " + Units.SIZE_FORMATS));
    }

    /// A time, where 0 needs no unit.
    static Duration parseDuration(String text) {
        return text.strip().equals("0")
                ? Duration.ZERO
                : Duration.ofMillis(Units.millis(text)
                        .orElseThrow(() -> new IllegalArgumentException("it takes 0, or " + Units.TIME_FORMATS)));
    }

    /// A time where 0 is none; the record that it is for checks the range.
    ///
    /// @param range as messages say it, `1s to 60s`
    static Function<String, Duration> durationParser(String range) {
        return text -> Duration.ofMillis(Units.millis(text)
                .orElseThrow(
                        () -> new IllegalArgumentException("it takes a time of " + range + ", with ms, s, m or h")));
    }

    /// A network as `10.0.0.0/8`, or one address.
    static String parseCidr(String text) {
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

    /// An eviction policy that ships with the store, or that a jar on the class path adds.
    static EvictionPolicyFactory parsePolicy(String text) {
        return EvictionPolicies.find(text.strip().toLowerCase(Locale.ROOT).replace('_', '-'))
                .orElseThrow(() -> new IllegalArgumentException("it takes " + EvictionPolicies.names()));
    }

    /// A constant by its name, in lower case and with dashes for underscores.
    static <E extends Enum<E>> E parseEnum(Class<E> type, String text) {
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
