package io.kvcache.planner.cli;

import io.kvcache.server.cli.CommandGroup;
import io.kvcache.server.cli.CommandLineBuilder;
import io.kvcache.server.cli.Kvcache;

/// The command line of a person who sizes a deployment: the server's commands and those of this module.
public final class PlannerCommands {

    private PlannerCommands() {}

    /// A builder, to which a module above adds its own commands.
    public static CommandLineBuilder commands() {
        return Kvcache.commands()
                .add(CommandGroup.PLAN, new ReplayCommand())
                .add(CommandGroup.PLAN, new LabCommand())
                .add(CommandGroup.PLAN, new SizeCommand())
                .add(CommandGroup.PLAN, new TraceCommand());
    }
}
