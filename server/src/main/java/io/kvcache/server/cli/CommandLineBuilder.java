package io.kvcache.server.cli;

import io.kvcache.server.config.DidYouMean;
import io.kvcache.tiers.memory.MemoryReservationException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;

/// Puts commands together into one command line, each under a heading of `help`.
///
/// A module with commands of its own starts from the builder of the module below it, so that each command is
/// declared once: `Kvcache.commands().add(CommandGroup.PLAN, new ReplayCommand())`.
public final class CommandLineBuilder {

    private final List<CommandLine> commands = new ArrayList<>();
    private final GroupedHelp help = new GroupedHelp();

    CommandLineBuilder() {}

    /// Adds a command below those that its group already has.
    ///
    /// @param command an object with the annotations of picocli
    public CommandLineBuilder add(CommandGroup group, Object command) {
        CommandLine line = new CommandLine(command);
        commands.add(line);
        help.addCommand(group, line.getCommandSpec());
        return this;
    }

    /// Lists a command that another program runs, such as the script that starts this one.
    public CommandLineBuilder addExternal(CommandGroup group, String name, String description) {
        help.addCommand(group, name, description);
        return this;
    }

    /// Runs a command: 0 done, 1 it failed, 2 the command was not understood. Commands that do not serve log
    /// warnings only, from here on in this JVM.
    public int run(String... arguments) {
        CommandLine line = build();
        line.setExecutionStrategy(parsed -> {
            CliLogging.install(parsed);
            return execute(parsed);
        });
        return line.execute(arguments);
    }

    /// A command line whose writers can be replaced. Each builder makes one, as a command belongs to one parent.
    public CommandLine build() {
        CommandLine line = new CommandLine(new Kvcache());
        commands.forEach(line::addSubcommand);
        line.setExecutionStrategy(CommandLineBuilder::execute);
        int columns = TextWidth.columns();
        line.setUsageHelpWidth(columns);
        line.setErr(TextWidth.wrapping(System.err, columns));
        line.setParameterExceptionHandler((mistake, arguments) -> printUsageError(mistake, help.names()));
        line.setExecutionExceptionHandler((failure, failed, parsed) -> printFailure(failure, failed));
        line.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_COMMAND_LIST, help);
        line.getHelpSectionMap().remove(UsageMessageSpec.SECTION_KEY_COMMAND_LIST_HEADING);
        return line;
    }

    /// Picocli shows the help of what it knows where an unknown command is followed by `--help`.
    private static int execute(ParseResult parsed) {
        ParseResult last = parsed;
        while (last.hasSubcommand()) {
            last = last.subcommand();
        }
        if (!last.unmatched().isEmpty()) {
            throw new CommandLine.UnmatchedArgumentException(last.commandSpec().commandLine(), last.unmatched());
        }
        return new CommandLine.RunLast().execute(parsed);
    }

    /// Prints the mistake, what was probably meant, and where to read on; not a screenful of options.
    private static int printUsageError(ParameterException mistake, List<String> commands) {
        CommandLine failed = mistake.getCommandLine();
        PrintWriter errors = failed.getErr();
        errors.println(describe(mistake));
        findSuggestion(mistake, commands)
                .ifPresentOrElse(
                        meant -> errors.println("Did you mean: " + meant + "?"),
                        () -> CommandLine.UnmatchedArgumentException.printSuggestions(mistake, errors));
        errors.println("See: " + failed.getCommandSpec().qualifiedName() + " --help");
        errors.flush();
        return CommandLine.ExitCode.USAGE;
    }

    /// Says what is wrong in our words where picocli's are Java's.
    private static String describe(ParameterException mistake) {
        if (mistake instanceof CommandLine.UnmatchedArgumentException unmatched && unmatched.isUnknownOption()) {
            String command = mistake.getCommandLine().getCommandSpec().qualifiedName();
            return command + ": there is no option " + unmatched.getUnmatched().getFirst();
        }
        if (mistake instanceof CommandLine.UnmatchedArgumentException unmatched
                && !mistake.getCommandLine().getSubcommands().isEmpty()) {
            return "Unknown command '" + unmatched.getUnmatched().getFirst() + "'.";
        }
        return String.valueOf(mistake.getMessage())
                .replace("option option", "option") // doubled where an option takes KEY=VALUE
                .replaceAll("is not an? (int|long)$", "is not a whole number")
                .replaceAll("is not a double$", "is not a number");
    }

    /// Returns the option or command whose name is nearest to one that does not exist.
    ///
    /// @param commands names of the outermost commands, with those that another program runs
    private static Optional<String> findSuggestion(ParameterException mistake, List<String> commands) {
        String typed = mistake instanceof CommandLine.UnmatchedArgumentException unmatched
                ? unmatched.getUnmatched().getFirst()
                : mistake.getValue();
        if (typed == null || mistake.getArgSpec() != null) {
            return Optional.empty();
        }
        CommandSpec spec = mistake.getCommandLine().getCommandSpec();
        if (typed.startsWith("-")) {
            String elsewhere = findElsewhere(spec, typed);
            return elsewhere != null
                    ? Optional.of(elsewhere)
                    : DidYouMean.findNearest(typed, spec.optionsMap().keySet());
        }
        return DidYouMean.findNearest(
                        typed,
                        spec.parent() == null ? commands : spec.subcommands().keySet())
                .map(name -> spec.qualifiedName() + " " + name);
    }

    /// Returns where the command says that what an option asks for is, or null.
    private static @Nullable String findElsewhere(CommandSpec spec, String typed) {
        String option = typed.replaceFirst("=.*", "");
        return Stream.concat(Stream.of(spec), spec.mixins().values().stream())
                .map(CommandSpec::userObject)
                .filter(OptionsElsewhere.class::isInstance)
                .map(each -> ((OptionsElsewhere) each).optionsElsewhere().get(option))
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }

    /// Prints an external failure as one line, and a bug as its stack trace.
    private static int printFailure(Exception failure, CommandLine failed) {
        if (failure instanceof NoSuchFileException missing) {
            failed.getErr().println("kvcache: no such file: " + missing.getFile());
        } else if (failure instanceof AccessDeniedException denied) {
            failed.getErr()
                    .println("kvcache: " + denied.getFile()
                            + " may not be read or written by this user; check its owner and mode");
        } else if (failure instanceof IOException || failure instanceof MemoryReservationException) {
            failed.getErr().println("kvcache: " + failure.getMessage());
        } else {
            failure.printStackTrace(failed.getErr());
        }
        failed.getErr().flush();
        return CommandLine.ExitCode.SOFTWARE;
    }

    /// Lists the commands in a usage message under the headings of [CommandGroup]; headings without commands are
    /// left out.
    private static final class GroupedHelp implements CommandLine.IHelpSectionRenderer {

        private final List<Entry> entries = new ArrayList<>();

        private record Entry(CommandGroup group, String name, String description) {

            String line(int columns) {
                String line = String.format(Locale.ROOT, "  %-12s %s", name, description);
                return TextWidth.wrap(line, 15, columns) + System.lineSeparator();
            }
        }

        /// Lists a command, unless it is hidden.
        void addCommand(CommandGroup group, CommandSpec command) {
            UsageMessageSpec usage = command.usageMessage();
            if (!usage.hidden()) {
                String[] text = usage.header().length > 0 ? usage.header() : usage.description();
                addCommand(group, command.name(), text.length == 0 ? "" : text[0]);
            }
        }

        void addCommand(CommandGroup group, String name, String description) {
            entries.add(new Entry(group, name, description));
        }

        /// Returns the names of the listed commands.
        List<String> names() {
            return entries.stream().map(Entry::name).toList();
        }

        @Override
        public String render(CommandLine.Help help) {
            StringBuilder text = new StringBuilder();
            for (CommandGroup group : CommandGroup.values()) {
                String lines = entries.stream()
                        .filter(entry -> entry.group() == group)
                        .map(entry ->
                                entry.line(help.commandSpec().usageMessage().width()))
                        .collect(Collectors.joining());
                if (!lines.isEmpty()) {
                    text.append(String.format(Locale.ROOT, "%n%s:%n%s", group.heading(), lines));
                }
            }
            return text.toString();
        }
    }

    /// The log of commands that end by themselves: warnings of the store, a line each, between the command's own
    /// words on standard error. A [LongRunningCommand] has a log of its own.
    private static final class CliLogging extends Formatter {

        /// A reference, as loggers without one forget their level.
        private static final Logger STORE = Logger.getLogger("io.kvcache");

        private CliLogging() {}

        /// Applies to this JVM from now on, unless the command serves.
        static void install(ParseResult parsed) {
            if (parsed.hasSubcommand()
                    && !(parsed.subcommand().commandSpec().userObject() instanceof LongRunningCommand)) {
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

    /// Marks a command that serves until it is stopped, and so has a log of its own.
    ///
    /// For every other command the command line logs warnings only, between the command's own output.
    public interface LongRunningCommand {}

    /// A command, or its options, without some options that are looked for there.
    public interface OptionsElsewhere {

        /// Returns what to type in place of an option that does not exist, by its name.
        Map<String, String> optionsElsewhere();
    }
}
