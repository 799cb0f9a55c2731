package io.kvcache.gpu.cuda;

import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.SimpleFormatter;

/// Hears what is logged.
final class LogRecorder extends Handler {

    private final List<String> messages;

    private LogRecorder(List<String> messages) {
        this.messages = messages;
    }

    /// One that notes messages, with what is in them.
    static Handler capturingTo(List<String> messages) {
        return new LogRecorder(messages);
    }

    @Override
    public void publish(LogRecord said) {
        messages.add(new SimpleFormatter().formatMessage(said));
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
}
