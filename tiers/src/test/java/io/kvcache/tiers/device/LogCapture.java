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
public final class LogCapture extends Handler implements AutoCloseable {

    private final Logger logger;
    private final List<String> infos = Collections.synchronizedList(new ArrayList<>());
    private final List<String> warnings = Collections.synchronizedList(new ArrayList<>());

    /// Begins to capture.
    public LogCapture(Class<?> type) {
        this.logger = Logger.getLogger(type.getName());
        logger.addHandler(this);
    }

    /// Returns the warnings so far.
    public List<String> warnings() {
        return List.copyOf(warnings);
    }

    /// Returns the messages of level INFO so far.
    public List<String> infos() {
        return List.copyOf(infos);
    }

    @Override
    public void publish(LogRecord record) {
        if (record.getLevel().equals(Level.INFO)) {
            infos.add(new SimpleFormatter().formatMessage(record));
        }
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
