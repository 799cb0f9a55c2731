package io.kvcache.server.cli;

import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import picocli.CommandLine.ParseResult;

/// The log of commands that end by themselves: warnings of the store, a line each, between the command's own words on
/// standard error. A [LongRunningCommand] has a log of its own.
final class CliLogging extends Formatter {

    /// Held here, as loggers that nobody holds forget their level.
    private static final Logger STORE = Logger.getLogger("io.kvcache");

    private CliLogging() {}

    /// Applies to this JVM from now on, unless the command serves.
    static void install(ParseResult parsed) {
        if (parsed.hasSubcommand() && !(parsed.subcommand().commandSpec().userObject() instanceof LongRunningCommand)) {
            STORE.setLevel(Level.WARNING);
            for (Handler handler : Logger.getLogger("").getHandlers()) {
                handler.setFormatter(new CliLogging());
            }
        }
    }

    @Override
    public String format(LogRecord event) {
        Throwable thrown = event.getThrown();
        return "kvcache: " + formatMessage(event) + (thrown == null ? "" : ": " + thrown) + "\n";
    }
}
