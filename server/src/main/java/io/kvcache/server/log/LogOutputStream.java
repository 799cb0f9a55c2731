package io.kvcache.server.log;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;

/// Stands in for standard output or error: each line that is printed there becomes an event, so that a
/// collector of the log finds nothing else in it.
///
/// **Threads.** Any.
final class LogOutputStream extends OutputStream {

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
