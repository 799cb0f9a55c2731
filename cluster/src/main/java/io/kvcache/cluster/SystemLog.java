package io.kvcache.cluster;

import java.lang.System.Logger.Level;
import java.util.Locale;
import org.jgroups.logging.CustomLogFactory;
import org.jgroups.logging.Log;
import org.jgroups.logging.LogFactory;

/// Passes the log of JGroups on to [System.Logger].
///
/// What JGroups calls warnings and errors is part of its daily work: messages for members that have just gone,
/// connections that broke, strangers at the port. What a person has to know is logged by the classes of this package.
/// So warnings and errors are at level `DEBUG` here, and the rest is at `TRACE`.
///
/// **Threads.** Any.
@SuppressWarnings("AnnotateFormatMethod") // the methods are those of JGroups
final class SystemLog implements Log {

    private final System.Logger logger;

    private SystemLog(String name) {
        logger = System.getLogger(name);
    }

    /// Has all logs of JGroups in this JVM passed on that are opened from now on.
    static void install() {
        LogFactory.setCustomLogFactory(new CustomLogFactory() {
            @Override
            public Log getLog(Class<?> type) {
                return new SystemLog(type.getName());
            }

            @Override
            public Log getLog(String category) {
                return new SystemLog(category);
            }
        });
    }

    @Override
    public boolean isFatalEnabled() {
        return logger.isLoggable(Level.WARNING);
    }

    @Override
    public boolean isErrorEnabled() {
        return logger.isLoggable(Level.DEBUG);
    }

    @Override
    public boolean isWarnEnabled() {
        return logger.isLoggable(Level.DEBUG);
    }

    @Override
    public boolean isInfoEnabled() {
        return logger.isLoggable(Level.DEBUG);
    }

    @Override
    public boolean isDebugEnabled() {
        return logger.isLoggable(Level.TRACE);
    }

    @Override
    public boolean isTraceEnabled() {
        return logger.isLoggable(Level.TRACE);
    }

    @Override
    public void fatal(String message) {
        logger.log(Level.WARNING, message);
    }

    @Override
    public void fatal(String format, Object... args) {
        logger.log(Level.WARNING, () -> String.format(Locale.ROOT, format, args));
    }

    @Override
    public void fatal(String message, Throwable cause) {
        logger.log(Level.WARNING, message, cause);
    }

    @Override
    public void error(String message) {
        logger.log(Level.DEBUG, message);
    }

    @Override
    public void error(String format, Object... args) {
        logger.log(Level.DEBUG, () -> String.format(Locale.ROOT, format, args));
    }

    @Override
    public void error(String message, Throwable cause) {
        logger.log(Level.DEBUG, message, cause);
    }

    @Override
    public void warn(String message) {
        logger.log(Level.DEBUG, message);
    }

    @Override
    public void warn(String format, Object... args) {
        logger.log(Level.DEBUG, () -> String.format(Locale.ROOT, format, args));
    }

    @Override
    public void warn(String message, Throwable cause) {
        logger.log(Level.DEBUG, message, cause);
    }

    @Override
    public void info(String message) {
        logger.log(Level.DEBUG, message);
    }

    @Override
    public void info(String format, Object... args) {
        logger.log(Level.DEBUG, () -> String.format(Locale.ROOT, format, args));
    }

    @Override
    public void debug(String message) {
        logger.log(Level.TRACE, message);
    }

    @Override
    public void debug(String format, Object... args) {
        logger.log(Level.TRACE, () -> String.format(Locale.ROOT, format, args));
    }

    @Override
    public void debug(String message, Throwable cause) {
        logger.log(Level.TRACE, message, cause);
    }

    @Override
    public void trace(Object message) {
        logger.log(Level.TRACE, String.valueOf(message));
    }

    @Override
    public void trace(String message) {
        logger.log(Level.TRACE, message);
    }

    @Override
    public void trace(String format, Object... args) {
        logger.log(Level.TRACE, () -> String.format(Locale.ROOT, format, args));
    }

    @Override
    public void trace(String message, Throwable cause) {
        logger.log(Level.TRACE, message, cause);
    }

    /// The level is the logger's own.
    @Override
    public void setLevel(String level) {}

    @Override
    public String getLevel() {
        return isTraceEnabled() ? "trace" : isWarnEnabled() ? "info" : "error";
    }
}
