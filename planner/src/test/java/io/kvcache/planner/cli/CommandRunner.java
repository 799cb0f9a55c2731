package io.kvcache.planner.cli;

import io.kvcache.server.cli.CommandGroup;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/// Runs a command in this process and keeps what it wrote.
final class CommandRunner {

    private static final int WIDE = 1_000;

    private CommandRunner() {}

    /// What a command left behind.
    record CommandResult(int exitCode, String out, String err) {}

    /// `sim --placement`, without what else bench has under that name.
    @Command(name = "sim")
    private static final class PlacementSim implements Callable<Integer> {

        @Mixin
        private final CommandIo io = new CommandIo();

        @ArgGroup(exclusive = false, multiplicity = "1")
        private PlacementSimRunner placement = new PlacementSimRunner();

        @Override
        public Integer call() throws IOException {
            return placement.run(io);
        }
    }

    static CommandResult run(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine line = PlannerCommands.commands()
                .add(CommandGroup.CHECK, new PlacementSim())
                .build();
        line.setUsageHelpWidth(WIDE); // so that text is found whatever words it breaks at
        line.setOut(new PrintWriter(out));
        line.setErr(new PrintWriter(err));
        int exitCode = line.execute(arguments);
        return new CommandResult(exitCode, out.toString(), err.toString());
    }
}
