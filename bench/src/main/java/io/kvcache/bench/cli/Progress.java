package io.kvcache.bench.cli;

import java.io.Console;
import java.io.PrintWriter;
import java.util.Optional;

/// One line on standard error that says what is going on, for people who watch; nothing in a pipe.
final class Progress implements AutoCloseable {

    private static final String CLEAR_LINE = "\r\u001b[K";

    private final PrintWriter errors;
    private final boolean watched;

    Progress(PrintWriter errors) {
        this.errors = errors;
        watched = Optional.ofNullable(System.console())
                .filter(Console::isTerminal)
                .isPresent();
    }

    /// Replaces the line.
    void show(String text) {
        if (watched) {
            errors.print(CLEAR_LINE + text);
            errors.flush();
        }
    }

    /// Whether anyone sees it.
    boolean isWatched() {
        return watched;
    }

    /// Removes the line.
    @Override
    public void close() {
        show("");
    }
}
