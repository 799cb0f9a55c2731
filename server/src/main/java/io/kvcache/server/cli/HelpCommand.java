package io.kvcache.server.cli;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `kvcache help [COMMAND...]`: how a command is used, at any depth. Picocli's own takes one name and ignores what
/// follows it.
@Command(name = "help", description = "Show how a command is used: help lab tiers, for one.")
final class HelpCommand implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help message and exit.")
    @SuppressWarnings("unused") // picocli asks the option, not the field
    private boolean helpRequested;

    @Parameters(
            paramLabel = "COMMAND",
            arity = "0..*",
            description = "The command, and its subcommand if it has some. Default: all commands are listed.")
    private List<String> names = new ArrayList<>();

    @Override
    public void run() {
        CommandLine command = spec.root().commandLine();
        for (String name : names) {
            CommandLine subcommand = command.getSubcommands().get(name);
            if (subcommand == null) {
                throw new ParameterException(command, describeUnknown(command, name), null, name);
            }
            command = subcommand;
        }
        command.usage(spec.commandLine().getOut());
        spec.commandLine().getOut().flush();
    }

    private static String describeUnknown(CommandLine command, String name) {
        return command.getSubcommands().isEmpty()
                ? command.getCommandSpec().qualifiedName() + " has no subcommands, so none is '" + name + "'"
                : "Unknown subcommand '" + name + "'.";
    }
}
