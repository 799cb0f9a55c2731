package io.kvcache.bench.cli;

import io.kvcache.server.config.Units;
import java.time.Duration;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// A time on the command line: a number of seconds, minutes or hours, as in 90s, 10m or 2h.
final class DurationConverter implements ITypeConverter<Duration> {

    @Override
    public Duration convert(String text) {
        long millis = Units.millis(text).orElse(0);
        if (millis < 1) {
            throw new TypeConversionException(
                    "'" + text + "' is not a time; it takes " + Units.TIME_FORMATS + ", above 0, as in 10m");
        }
        return Duration.ofMillis(millis);
    }
}
