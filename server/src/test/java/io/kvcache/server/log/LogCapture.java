package io.kvcache.server.log;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/// Collects the log lines of one class during a test.
public final class LogCapture extends Handler implements AutoCloseable {

    private final Logger logger;
    private final List<String> messages = new CopyOnWriteArrayList<>();

    /// @param logger full name of the class
    public LogCapture(String logger) {
        this.logger = Logger.getLogger(logger);
        this.logger.addHandler(this);
    }

    public List<String> messages() {
        return messages;
    }

    @Override
    public void publish(LogRecord event) {
        messages.add(event.getMessage());
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
        logger.removeHandler(this);
    }
}
