package io.kvcache.server.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import picocli.CommandLine;

/// Runs a command in this process and keeps what it wrote.
public final class CliRunner {

    private CliRunner() {}

    /// A command's exit code and output.
    public record CliResult(int exitCode, String out, String err) {}

    public static CliResult run(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine line = Kvcache.commandLine();
        line.setOut(new PrintWriter(out));
        line.setErr(new PrintWriter(err));
        int exitCode = line.execute(arguments);
        return new CliResult(exitCode, out.toString(), err.toString());
    }
}
