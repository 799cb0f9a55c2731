package io.kvcache.bench.cli;

import java.util.Set;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import picocli.CommandLine.ParseResult;

/// What the store logs while a command uses it that ends by itself: warnings, a line each,
/// between the command's own words on standard error. What serves has a log of its own.
final class ToolLog extends Formatter {

    private static final Set<String> SERVING = Set.of("serve", "chat-server", "rehearse");

    /// Held here, as loggers that nobody holds forget their level.
    private static final Logger STORE = Logger.getLogger("io.kvcache");

    private ToolLog() {}

    /// From now on, in this JVM, if the command is none that serves.
    static void begin(ParseResult parsed) {
        if (parsed.hasSubcommand()
                && !SERVING.contains(parsed.subcommand().commandSpec().name())) {
            STORE.setLevel(Level.WARNING);
            for (Handler handler : Logger.getLogger("").getHandlers()) {
                handler.setFormatter(new ToolLog());
            }
        }
    }

    @Override
    public String format(LogRecord event) {
        Throwable thrown = event.getThrown();
        return "kvcache: " + formatMessage(event) + (thrown == null ? "" : ": " + thrown) + "\n";
    }
}
