package io.kvcache.engines.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import picocli.CommandLine;

/// Runs a command in this process and keeps what it wrote.
final class CommandRunner {

    private CommandRunner() {}

    /// What a command left behind.
    record Run(int exitCode, String out, String err) {}

    static Run run(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine line = Kvcache.commandLine();
        line.setOut(new PrintWriter(out, true));
        line.setErr(new PrintWriter(err, true));
        int exitCode = line.execute(arguments);
        return new Run(exitCode, out.toString(), err.toString());
    }
}
