package io.kvcache.bench.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import picocli.CommandLine;

/// Runs a command in this process and keeps what it wrote.
final class CommandRunner {

    private static final int WIDE = 1_000;

    private CommandRunner() {}

    /// What a command left behind.
    record CommandResult(int exitCode, String out, String err) {}

    static CommandResult run(String... arguments) {
        return run(Kvcache.commandLine(), arguments);
    }

    /// Runs `sim` or `crash`.
    static CommandResult runTrial(String... arguments) {
        return run(Trials.commandLine(), arguments);
    }

    private static CommandResult run(CommandLine line, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        line.setUsageHelpWidth(WIDE); // so that text is found whatever words it breaks at
        line.setOut(new PrintWriter(out));
        line.setErr(new PrintWriter(err));
        int exitCode = line.execute(arguments);
        return new CommandResult(exitCode, out.toString(), err.toString());
    }
}
