package io.kvcache.server.log;

import java.util.logging.Level;

/// The least important events that are written.
@SuppressWarnings("ImmutableEnumChecker") // a Level does not change
public enum LogLevel {
    DEBUG(Level.FINE),
    INFO(Level.INFO),
    WARNING(Level.WARNING),
    ERROR(Level.SEVERE);

    private final Level level;

    LogLevel(Level level) {
        this.level = level;
    }

    /// The name that java.util.logging has for it.
    Level level() {
        return level;
    }

    boolean isEnabledFor(Level of) {
        return of.intValue() >= level.intValue();
    }
}
