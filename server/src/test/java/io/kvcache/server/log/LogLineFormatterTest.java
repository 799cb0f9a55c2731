package io.kvcache.server.log;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.log.LogLineFormatter.LogFormat;
import io.kvcache.server.log.LogLineFormatter.LogLevel;
import io.kvcache.server.log.LogLineFormatter.LogOutputStream;
import java.io.PrintStream;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.StreamHandler;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

final class LogLineFormatterTest {

    private static LogRecord event(Level level, String message) {
        LogRecord event = new LogRecord(level, message);
        event.setInstant(Instant.parse("2026-11-20T20:00:00.123456Z"));
        event.setLoggerName("io.kvcache.server.X");
        return event;
    }

    @Test
    void givenAnEvent_whenWrittenAsPairs_thenItIsOneLineWithQuotesWhereNeeded() {
        assertThat(new LogLineFormatter(LogFormat.KEY_VALUE).format(event(Level.WARNING, "key \"a\"\nlevel=error")))
                .isEqualTo("time=2026-11-20T20:00:00.123Z level=warning logger=io.kvcache.server.X"
                        + " msg=\"key \\\"a\\\"\\nlevel=error\"\n");
        assertThat(new LogLineFormatter(LogFormat.KEY_VALUE).format(event(Level.SEVERE, "started")))
                .endsWith(" level=error logger=io.kvcache.server.X msg=started\n");
    }

    @Test
    void givenCharactersThatATerminalObeys_whenWritten_thenTheyAreEscaped() {
        assertThat(new LogLineFormatter(LogFormat.KEY_VALUE)
                        .format(event(Level.WARNING, "a\u001b\u009b\u202eb\u2028ö")))
                .endsWith(" msg=\"a\\u001b\\u009b\\u202eb\\u2028ö\"\n");
        assertThat(new LogLineFormatter(LogFormat.KEY_VALUE).format(event(Level.WARNING, "a\u009bb")))
                .endsWith(" msg=\"a\\u009bb\"\n");
    }

    @Test
    void givenALoggerOfANestedClass_whenWritten_thenTheLineNamesTheOuterClass() {
        LogRecord event = event(Level.INFO, "reloaded");
        event.setLoggerName("io.kvcache.server.X$Reloader$1");

        assertThat(new LogLineFormatter(LogFormat.KEY_VALUE).format(event))
                .endsWith(" logger=io.kvcache.server.X msg=reloaded\n");
        assertThat(new LogLineFormatter(LogFormat.JSON).format(event)).contains("\"logger\":\"io.kvcache.server.X\"");
    }

    @Test
    void givenAFailure_whenWrittenAsJson_thenTheStackIsOneValueOfOneLine() {
        LogRecord event = event(Level.SEVERE, "disk {0} is out");
        event.setParameters(new Object[] {7});
        event.setThrown(new IllegalStateException("why", new RuntimeException("cause")));

        String line = new LogLineFormatter(LogFormat.JSON).format(event);

        assertThat(line.indexOf('\n')).isEqualTo(line.length() - 1);
        JsonNode fields = JsonMapper.builder().build().readTree(line);
        assertThat(fields.path("msg").stringValue()).isEqualTo("disk 7 is out");
        assertThat(fields.path("level").stringValue()).isEqualTo("error");
        assertThat(fields.path("error").stringValue()).contains("IllegalStateException: why", "\n\tat ", "cause");
    }

    @Test
    void givenPrintedText_whenItsLinesEnd_thenEachIsAnEvent() {
        List<String> events = new ArrayList<>();
        PrintStream printed = LogOutputStream.printStream(events::add);

        printed.print("one ");
        printed.flush();
        printed.print("line\n\nand anöther\nnot yet");

        assertThat(events).containsExactly("one line", "and anöther");
    }

    @Test
    void givenALevel_whenAnEventIsLessImportant_thenItIsNotWritten() {
        assertThat(LogLevel.WARNING.isEnabledFor(Level.INFO)).isFalse();
        assertThat(LogLevel.WARNING.isEnabledFor(Level.SEVERE)).isTrue();
        assertThat(LogLevel.DEBUG.isEnabledFor(Level.FINE)).isTrue();
        assertThat(LogLevel.INFO.isEnabledFor(Level.FINE)).isFalse();
    }

    @Test
    void givenLinesOfPairs_whenAThreadEndsByAnException_thenItIsAnEventToo() throws InterruptedException {
        List<String> events = new CopyOnWriteArrayList<>();
        Logger logger = Logger.getLogger("io.kvcache");
        Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
        Formatter formatter = new LogLineFormatter(LogFormat.KEY_VALUE);
        Handler handler = new StreamHandler() {
            @Override
            public synchronized void publish(LogRecord event) {
                events.add(formatter.format(event));
            }
        };
        logger.addHandler(handler);
        try {
            LogLineFormatter.catchUncaught();
            Thread.ofVirtual()
                    .name("a-thread")
                    .start(() -> {
                        throw new IllegalStateException("why");
                    })
                    .join();
        } finally {
            logger.removeHandler(handler);
            Thread.setDefaultUncaughtExceptionHandler(before);
        }
        assertThat(events).hasSize(1);
        assertThat(events.getFirst())
                .startsWith("time=")
                .contains("level=error", "thread a-thread ended by an exception", "IllegalStateException: why");
    }

    @Test
    void givenAFullSecond_whenAnEventIsWritten_thenItsTimeHasMillisecondsToo() {
        LogRecord event = event(Level.INFO, "started");
        event.setInstant(Instant.parse("2026-11-20T20:00:00Z"));

        assertThat(new LogLineFormatter(LogFormat.KEY_VALUE).format(event))
                .startsWith("time=2026-11-20T20:00:00.000Z ");
    }
}
