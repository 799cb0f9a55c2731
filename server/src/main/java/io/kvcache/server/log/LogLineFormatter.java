package io.kvcache.server.log;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

/// One line an event, for programs that collect logs; a stack trace is one value in it.
public final class LogLineFormatter extends Formatter {

    /// The destination of events, even after standard error is replaced.
    private static final PrintStream STDERR = System.err;

    private static final Logger ROOT = Logger.getLogger("");

    /// A reference, as loggers without one forget their level.
    private static final Logger KVCACHE_LOGGER = Logger.getLogger("io.kvcache");

    /// Three digits behind the point also where they are zeros, so that all times are equally long.
    private static final DateTimeFormatter MILLIS =
            new DateTimeFormatterBuilder().appendInstant(3).toFormatter(Locale.ROOT);

    private final LogFormat format;

    public LogLineFormatter(LogFormat format) {
        this.format = format;
    }

    /// Has everything that this JVM logs from a level on written so, and what ends a thread too. As JSON, that is all
    /// there is: what is printed to standard output or error becomes an event as well.
    public static void install(LogFormat format, LogLevel level) {
        for (Handler handler : ROOT.getHandlers()) { // made now, with what standard error is now
            handler.setFormatter(new LogLineFormatter(format));
            handler.setLevel(level.level());
        }
        ROOT.setLevel(level == LogLevel.DEBUG ? Level.INFO : level.level()); // what others tell to debug drowns ours
        KVCACHE_LOGGER.setLevel(level.level());
        if (format == LogFormat.JSON) {
            System.setOut(LogOutputStream.printStream(line -> write(format, level, Level.INFO, "stdout", line)));
            System.setErr(LogOutputStream.printStream(line -> write(format, level, Level.WARNING, "stderr", line)));
        }
        catchUncaught();
    }

    /// Has what ends a thread logged: the JVM prints it without a time and a level.
    static void catchUncaught() {
        Thread.setDefaultUncaughtExceptionHandler((thread, thrown) -> KVCACHE_LOGGER.log(
                Level.SEVERE, thrown, () -> "thread " + thread.getName() + " ended by an exception"));
    }

    /// Writes one event to standard error, where the others go, when it can no longer be logged: a JVM that ends
    /// takes its handlers away beside all else that ends.
    public static void writeDirectly(LogFormat format, LogLevel least, Level level, Class<?> by, String message) {
        write(format, least, level, by.getName(), message);
    }

    private static void write(LogFormat format, LogLevel least, Level level, String logger, String message) {
        if (least.isEnabledFor(level)) {
            LogRecord event = new LogRecord(level, message);
            event.setLoggerName(logger);
            STDERR.print(new LogLineFormatter(format).format(event));
            STDERR.flush();
        }
    }

    @Override
    public String format(LogRecord event) {
        Map<String, String> fields = new LinkedHashMap<>();
        fields.put("time", MILLIS.format(event.getInstant()));
        fields.put("level", levelName(event.getLevel()));
        fields.put("logger", outerClass(String.valueOf(event.getLoggerName())));
        fields.put("msg", formatMessage(event));
        Throwable thrown = event.getThrown();
        if (thrown != null) {
            fields.put("error", stackTrace(thrown));
        }
        return (format == LogFormat.JSON ? JsonLines.MAPPER.writeValueAsString(fields) : keyValuePairs(fields)) + "\n";
    }

    /// Returns a logger's name without nested classes: readers and filters know a class by its file.
    private static String outerClass(String logger) {
        int nested = logger.indexOf('$');
        return nested > 0 ? logger.substring(0, nested) : logger;
    }

    /// Returns the name that System.Logger has for a level.
    private static String levelName(Level level) {
        if (level.equals(Level.SEVERE)) {
            return "error";
        }
        return level.equals(Level.FINE) ? "debug" : level.getName().toLowerCase(Locale.ROOT);
    }

    private static String stackTrace(Throwable thrown) {
        StringWriter text = new StringWriter();
        thrown.printStackTrace(new PrintWriter(text, true));
        return text.toString().strip();
    }

    private static String keyValuePairs(Map<String, String> fields) {
        StringBuilder line = new StringBuilder();
        fields.forEach((name, value) ->
                line.append(line.isEmpty() ? "" : " ").append(name).append('=').append(quote(value)));
        return line.toString();
    }

    /// As it is when it has nothing that ends a value, else in quotes, where line ends are `\\n`.
    private static String quote(String value) {
        boolean plain = !value.isEmpty()
                && value.chars()
                        .noneMatch(each -> each <= ' ' || each == '"' || each == '=' || each == '\\' || isHidden(each));
        return plain ? value : "\"" + escape(value) + "\"";
    }

    private static @Nullable String escapeSequence(int character) {
        return switch (character) {
            case '"' -> "\\\"";
            case '\\' -> "\\\\";
            case '\n' -> "\\n";
            case '\r' -> "\\r";
            case '\t' -> "\\t";
            default -> null;
        };
    }

    /// Returns whether a terminal would obey a character and not show it: controls, those of ISO 6429 beyond ASCII too,
    /// and what changes the direction of the text.
    private static boolean isHidden(int character) {
        return switch (Character.getType(character)) {
            case Character.CONTROL, Character.FORMAT, Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR -> true;
            default -> false;
        };
    }

    private static String escape(String value) {
        StringBuilder text = new StringBuilder();
        value.chars().forEach(each -> {
            String known = escapeSequence(each);
            if (known != null) {
                text.append(known);
            } else if (isHidden(each)) {
                text.append(String.format(Locale.ROOT, "\\u%04x", each));
            } else {
                text.append((char) each);
            }
        });
        return text.toString();
    }

    /// Made for the first line of JSON: what it takes is a good part of a server's start.
    private static final class JsonLines {

        static final JsonMapper MAPPER = JsonMapper.builder().build();
    }

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

    /// How an event is written: one line in each case.
    public enum LogFormat {
        /// `time=… level=… logger=… msg="…"`.
        KEY_VALUE,
        /// An object with the same names.
        JSON
    }

    /// Stands in for standard output or error: each line that is printed there becomes an event, so that a
    /// collector of the log finds nothing else in it.
    ///
    /// **Threads.** Any.
    static final class LogOutputStream extends OutputStream {

        /// A longer line becomes several events.
        private static final int MAX_LINE_BYTES = 64 << 10;

        private final ByteArrayOutputStream line = new ByteArrayOutputStream();
        private final Consumer<String> events;

        private LogOutputStream(Consumer<String> events) {
            this.events = events;
        }

        /// @param events told each line, without its end
        static PrintStream printStream(Consumer<String> events) {
            return new PrintStream(new LogOutputStream(events), true, StandardCharsets.UTF_8);
        }

        @Override
        public synchronized void write(int octet) {
            if (octet == '\n') {
                emitLine();
            } else {
                line.write(octet);
                if (line.size() >= MAX_LINE_BYTES) {
                    emitLine();
                }
            }
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int count) {
            for (int at = from; at < from + count; at++) {
                write(bytes[at]);
            }
        }

        private void emitLine() {
            String text = line.toString(StandardCharsets.UTF_8).stripTrailing();
            line.reset();
            if (!text.isEmpty()) {
                events.accept(text);
            }
        }
    }
}
