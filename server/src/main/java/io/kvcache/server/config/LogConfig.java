package io.kvcache.server.config;

import io.kvcache.server.log.LogFormat;
import io.kvcache.server.log.LogLevel;
import java.time.Duration;

/// What is logged, and how it looks.
///
/// @param level the least important events that are written
/// @param slow requests that take longer are logged; zero for none
public record LogConfig(LogFormat format, LogLevel level, Duration slow) {

    private static final Duration MAX_SLOW_THRESHOLD = Duration.ofHours(1);

    public LogConfig {
        if (slow.isNegative() || slow.compareTo(MAX_SLOW_THRESHOLD) > 0) {
            throw new IllegalArgumentException(
                    "log.slow is " + slow.toSeconds() + "s; it takes 0 for no log of slow requests, or 1ms to 1h");
        }
    }

    /// Lines of keys and values, from `info` on; slow requests are not logged.
    public static LogConfig defaults() {
        return new LogConfig(LogFormat.KEY_VALUE, LogLevel.INFO, Duration.ZERO);
    }

    static LogConfig read(Settings from, LogConfig defaultValue) {
        LogFormat format =
                from.get("log.format", defaultValue.format(), text -> SettingParsers.parseEnum(LogFormat.class, text));
        LogLevel level =
                from.get("log.level", defaultValue.level(), text -> SettingParsers.parseEnum(LogLevel.class, text));
        Duration slow = from.get("log.slow", defaultValue.slow(), SettingParsers::parseDuration);
        return from.getValid(new LogConfig(format, level, Duration.ZERO), () -> new LogConfig(format, level, slow));
    }
}
