package io.kvcache.bench.cli;

import java.util.List;
import java.util.stream.Stream;
import picocli.CommandLine;

/// The commands there are and the heading that `help` lists each under. A new command is a new line here.
final class CommandTable {

    private CommandTable() {}

    /// @param command an object with picocli's annotations
    record Entry(CommandGroup group, Object command) {}

    static List<Entry> entries() {
        return Stream.concat(KeyCommands.entries().stream(), others().stream()).toList();
    }

    private static List<Entry> others() {
        return List.of(
                new Entry(CommandGroup.RUN, new DemoCommand()),
                new Entry(CommandGroup.RUN, new ServeCommand()),
                new Entry(CommandGroup.RUN, new ChatServerCommand()),
                new Entry(CommandGroup.PLAN, new ReplayCommand()),
                new Entry(CommandGroup.PLAN, new LabCommand()),
                new Entry(CommandGroup.PLAN, new SizeCommand()),
                new Entry(CommandGroup.PLAN, new TraceCommand()),
                new Entry(CommandGroup.CHECK, new BenchCommand()),
                new Entry(CommandGroup.CHECK, new CrashCommand()),
                new Entry(CommandGroup.CHECK, new DoctorCommand()),
                new Entry(CommandGroup.CHECK, new FsckCommand()),
                new Entry(CommandGroup.CHECK, new InspectCommand()),
                new Entry(CommandGroup.CHECK, new SimCommand()),
                new Entry(CommandGroup.CHECK, new ConfigCommand()),
                new Entry(CommandGroup.USE, new TopCommand()),
                new Entry(CommandGroup.USE, new EventsCommand()),
                new Entry(CommandGroup.USE, new DiskCommand()),
                new Entry(CommandGroup.DEVELOP, new RehearseCommand()),
                new Entry(CommandGroup.USE, new CommandLine.HelpCommand()));
    }
}
