package io.kvcache.bench.cli;

import io.kvcache.planner.cli.PlannerCommands;
import io.kvcache.server.cli.CommandGroup;
import io.kvcache.server.cli.CommandLineBuilder;
import picocli.CommandLine;

/// The main class of the commands that try the store, `crash` and `sim`. They need classes of the test tree, so they
/// run only from a checkout.
public final class Trials {

    private Trials() {}

    /// Runs a command and exits: 0 done, 1 it failed, 2 the command was not understood.
    public static void main(String... arguments) {
        System.exit(commands().run(arguments));
    }

    private static CommandLineBuilder commands() {
        return PlannerCommands.commands()
                .add(CommandGroup.CHECK, new CrashCommand())
                .add(CommandGroup.CHECK, new SimCommand());
    }

    /// The command line; its writers can be replaced.
    static CommandLine commandLine() {
        return commands().build();
    }
}
