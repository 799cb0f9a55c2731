package io.kvcache.server.cli;

import java.io.Console;
import java.io.PrintWriter;
import java.util.Optional;

/// One line of progress on standard error; nothing unless that is a terminal.
public final class ProgressLine implements AutoCloseable {

    private static final String CLEAR_LINE = "\r\u001b[K";

    private final PrintWriter errors;
    private final boolean terminal;

    /// @param errors standard error of the command
    public ProgressLine(PrintWriter errors) {
        this.errors = errors;
        terminal = isOnTerminal();
    }

    /// Returns whether a person watches this process.
    static boolean isOnTerminal() {
        return Optional.ofNullable(System.console()).filter(Console::isTerminal).isPresent();
    }

    /// Replaces the line.
    public void update(String text) {
        if (terminal) {
            errors.print(CLEAR_LINE + text);
            errors.flush();
        }
    }

    /// Returns whether standard error is a terminal.
    public boolean isTerminal() {
        return terminal;
    }

    /// Removes the line.
    @Override
    public void close() {
        update("");
    }
}
