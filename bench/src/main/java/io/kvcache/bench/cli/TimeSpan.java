package io.kvcache.bench.cli;

import java.time.Duration;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// A time on the command line: a number of seconds, minutes or hours, as in 90s, 10m or 2h.
final class TimeSpan implements ITypeConverter<Duration> {

    @Override
    public Duration convert(String text) {
        if (!text.matches("[1-9][0-9]{0,5}[smh]")) {
            throw new TypeConversionException("'" + text + "' is no time; it takes a number of s, m or h, as in 10m");
        }
        long count = Long.parseLong(text.substring(0, text.length() - 1));
        return switch (text.charAt(text.length() - 1)) {
            case 's' -> Duration.ofSeconds(count);
            case 'm' -> Duration.ofMinutes(count);
            default -> Duration.ofHours(count);
        };
    }
}
