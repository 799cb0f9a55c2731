package io.kvcache.gpu.cuda;

import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.SimpleFormatter;

/// Hears what is logged.
final class Said extends Handler {

    private final List<String> messages;

    private Said(List<String> messages) {
        this.messages = messages;
    }

    /// One that notes messages, with what is in them.
    static Handler to(List<String> messages) {
        return new Said(messages);
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
