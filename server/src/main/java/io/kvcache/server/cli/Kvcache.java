package io.kvcache.server.cli;

import io.kvcache.server.cli.FsckCommand.InspectCommand;
import io.kvcache.server.cli.Version.VersionCommand;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// The main class of the command line that ships: the server, its clients, and what looks at its disks.
@Command(
        name = "kvcache",
        description = "An LLM-serving KV-cache store: run it, use it, plan with it, check it.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class)
public final class Kvcache implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    /// Runs a command and exits: 0 done, 1 it failed, 2 the command was not understood.
    public static void main(String... arguments) {
        System.exit(commands().run(arguments));
    }

    /// The commands of the server. A larger command line adds its own to them.
    public static CommandLineBuilder commands() {
        CommandLineBuilder commands = new CommandLineBuilder()
                .add(CommandGroup.RUN, new ServeCommand())
                .add(CommandGroup.CHECK, new DoctorCommand())
                .add(CommandGroup.CHECK, new FsckCommand())
                .add(CommandGroup.CHECK, new InspectCommand())
                .add(CommandGroup.CHECK, new ConfigCommand());
        ClientCommands.commands().forEach(command -> commands.add(CommandGroup.USE, command));
        return commands.add(CommandGroup.USE, new TopCommand())
                .add(CommandGroup.USE, new EventsCommand())
                .add(CommandGroup.USE, new DiskCommand())
                .add(CommandGroup.USE, new ClusterCommand())
                .add(CommandGroup.USE, new VersionCommand())
                .add(CommandGroup.USE, new HelpCommand())
                .add(CommandGroup.DEVELOP, new RehearseCommand());
    }

    /// The server's command line; its writers can be replaced.
    public static CommandLine commandLine() {
        return commands().build();
    }

    /// Without a command there is nothing to do.
    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache: which command?");
    }

    /// `kvcache help [COMMAND...]`: how a command is used, at any depth. Picocli's own takes one name and ignores
    /// what follows it.
    @Command(name = "help", description = "Show how a command is used: help lab tiers, for one.")
    static final class HelpCommand implements Runnable {

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
}
