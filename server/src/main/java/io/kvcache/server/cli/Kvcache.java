package io.kvcache.server.cli;

import io.kvcache.server.cli.FsckCommand.InspectCommand;
import io.kvcache.server.cli.Version.VersionCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
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
}
