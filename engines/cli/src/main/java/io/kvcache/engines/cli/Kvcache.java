package io.kvcache.engines.cli;

import io.kvcache.server.cli.CommandGroup;
import io.kvcache.server.cli.CommandLineBuilder;
import picocli.CommandLine;

/// The main class of the command line with inference engines: the commands of server and bench, and those of this
/// module.
public final class Kvcache {

    private Kvcache() {}

    /// Runs a command and exits: 0 done, 1 it failed, 2 the command was not understood.
    public static void main(String... arguments) {
        System.exit(commands().run(arguments));
    }

    /// All commands of KVCache.
    static CommandLineBuilder commands() {
        return io.kvcache.bench.cli.Kvcache.commands()
                .add(CommandGroup.RUN, new ChatServerCommand())
                .add(CommandGroup.RUN, new EnginesCommand());
    }

    /// The command line; its writers can be replaced.
    static CommandLine commandLine() {
        return commands().build();
    }
}
