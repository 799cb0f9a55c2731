package io.kvcache.planner.cli;

import io.kvcache.server.cli.TextWidth;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.function.Supplier;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// Prints the output of a command and rejects values: a picocli mixin without options.
@Command // picocli takes a class without options for a mixin only with this annotation
public final class CommandIo {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    public CommandIo() {
        this(CommandSpec.create());
    }

    public CommandIo(CommandSpec spec) {
        this.spec = spec;
    }

    public PrintWriter out() {
        return spec.commandLine().getOut();
    }

    public PrintWriter err() {
        return spec.commandLine().getErr();
    }

    /// The command as it was typed, without the program's name.
    public String arguments() {
        return String.join(" ", spec.root().commandLine().getParseResult().originalArgs());
    }

    /// Returns whether an option was typed.
    public boolean isGiven(String option) {
        return spec.commandLine().getParseResult().hasMatchedOption(option);
    }

    /// Returns a hit ratio as every report shows it: `11.18 %`. Rows for programs have the share of one, in
    /// all digits.
    public static String percent(double ratio) {
        return String.format(Locale.ROOT, "%.2f %%", 100 * ratio);
    }

    /// Writes a text to standard output as it is.
    public void print(String text) {
        out().print(text);
        out().flush();
    }

    public void println(String line) {
        out().println(line);
        out().flush();
    }

    /// Columns for text.
    public int columns() {
        return spec.commandLine().getUsageHelpWidth();
    }

    /// Writes text for people to standard output, in lines that fit the terminal.
    public void printText(String text) {
        println(TextWidth.wrap(text, columns()));
    }

    /// Writes a value to standard output as one line of JSON.
    public void printJson(Object value) {
        println(JSON.writeValueAsString(value));
    }

    /// Writes a line to standard error, after the command's name.
    public void printError(String text) {
        err().println(spec.qualifiedName() + ": " + text);
        err().flush();
    }

    /// Returns what the options say.
    ///
    /// @param options throws an [IllegalArgumentException] that names an option, its value and what is allowed
    /// @throws ParameterException for that
    public <T> T check(Supplier<T> options) {
        try {
            return options.get();
        } catch (IllegalArgumentException wrong) {
            throw usageError(wrong);
        }
    }

    public ParameterException usageError(String message) {
        return new ParameterException(spec.commandLine(), spec.qualifiedName() + ": " + message);
    }

    public ParameterException usageError(Exception cause) {
        return new ParameterException(spec.commandLine(), spec.qualifiedName() + ": " + cause.getMessage(), cause);
    }
}
