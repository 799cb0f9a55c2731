package io.kvcache.tiers.device;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/// Captures the log messages of a class while it is open.
final class LogCapture extends Handler implements AutoCloseable {

    private final Logger logger;
    private final List<String> warnings = Collections.synchronizedList(new ArrayList<>());

    LogCapture(Class<?> type) {
        this.logger = Logger.getLogger(type.getName());
        logger.addHandler(this);
    }

    List<String> warnings() {
        return List.copyOf(warnings);
    }

    @Override
    public void publish(LogRecord record) {
        if (record.getLevel().equals(Level.WARNING)) {
            warnings.add(new SimpleFormatter().formatMessage(record));
        }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
        logger.removeHandler(this);
    }
}
