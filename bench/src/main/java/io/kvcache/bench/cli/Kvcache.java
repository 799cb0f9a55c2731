package io.kvcache.bench.cli;

import io.kvcache.planner.cli.PlannerCommands;
import io.kvcache.server.cli.CommandGroup;
import io.kvcache.server.cli.CommandLineBuilder;
import picocli.CommandLine;

/// The main class of the command line that measures: the commands of server and planner, and those of this
/// module.
public final class Kvcache {

    private Kvcache() {}

    /// Runs a command and exits: 0 done, 1 it failed, 2 the command was not understood.
    public static void main(String... arguments) {
        System.exit(commands().run(arguments));
    }

    /// The commands of server, planner and this module, and those that the launcher script `kvcache` handles
    /// itself.
    public static CommandLineBuilder commands() {
        return PlannerCommands.commands()
                .add(CommandGroup.RUN, new DemoCommand())
                .add(CommandGroup.CHECK, new BenchCommand())
                .addExternal(
                        CommandGroup.CHECK,
                        "crash",
                        "Kill -9 a process that writes to a disk tier, again and again, and check that all flushed blocks"
                                + " are there and every byte is right.")
                .addExternal(
                        CommandGroup.CHECK,
                        "sim",
                        "Run the store over disks that fail and crash, in virtual time, and check every byte and promise."
                                + " With --placement, replay a trace over nodes that own its blocks instead.")
                .addExternal(CommandGroup.CHECK, "test", "Run all tests, or with --quick those of two minutes.")
                .addExternal(CommandGroup.DEVELOP, "gpu-kit", "Pack tests and benchmarks for a machine with a GPU.")
                .addExternal(CommandGroup.DEVELOP, "jar", "Make one jar of the server, for java -jar.")
                .addExternal(CommandGroup.DEVELOP, "hitrate-jar", "Make one JMH jar for any trace and policy.")
                .addExternal(CommandGroup.DEVELOP, "python-dist", "Make wheel and source archive of the Python client.")
                .addExternal(CommandGroup.DEVELOP, "image", "Make a container image of the server, without Docker.")
                .addExternal(CommandGroup.DEVELOP, "release", "Make all that is published of a version.")
                .addExternal(CommandGroup.DEVELOP, "build", "Build without checks; other commands do when needed.")
                .addExternal(CommandGroup.DEVELOP, "install", "Build without checks and install into ~/.m2.")
                .addExternal(CommandGroup.DEVELOP, "clean", "Remove what was built.");
    }

    /// The command line; its writers can be replaced.
    public static CommandLine commandLine() {
        return commands().build();
    }
}
