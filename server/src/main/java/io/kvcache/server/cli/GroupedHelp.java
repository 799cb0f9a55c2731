package io.kvcache.server.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.UsageMessageSpec;

/// Lists the commands in a usage message under the headings of [CommandGroup]; headings without commands are left
/// out.
final class GroupedHelp implements CommandLine.IHelpSectionRenderer {

    private final List<Entry> entries = new ArrayList<>();

    private record Entry(CommandGroup group, String name, String description) {

        String line() {
            return String.format(Locale.ROOT, "  %-12s %s%n", name, description);
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

    @Override
    public String render(CommandLine.Help help) {
        StringBuilder text = new StringBuilder();
        for (CommandGroup group : CommandGroup.values()) {
            String lines = entries.stream()
                    .filter(entry -> entry.group() == group)
                    .map(Entry::line)
                    .collect(Collectors.joining());
            if (!lines.isEmpty()) {
                text.append(String.format(Locale.ROOT, "%n%s:%n%s", group.heading(), lines));
            }
        }
        return text.toString();
    }
}
