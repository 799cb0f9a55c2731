package io.kvcache.bench.cli;

import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Model.UsageMessageSpec;

/// Lists the commands in a usage message under the headings of [CommandGroup]; headings without commands are left
/// out.
final class GroupedHelp implements CommandLine.IHelpSectionRenderer {

    private final Map<String, CommandGroup> groups;

    GroupedHelp(Map<String, CommandGroup> groups) {
        this.groups = Map.copyOf(groups);
    }

    @Override
    public String render(CommandLine.Help help) {
        StringBuilder text = new StringBuilder();
        for (CommandGroup group : CommandGroup.values()) {
            String lines = help.subcommands().entrySet().stream()
                    .filter(command -> groups.get(command.getKey()) == group)
                    .map(command -> line(command.getKey(), description(command.getValue())))
                    .collect(Collectors.joining());
            lines += LauncherCommand.ALL.stream()
                    .filter(command -> command.group() == group)
                    .map(command -> line(command.name(), command.description()))
                    .collect(Collectors.joining());
            if (!lines.isEmpty()) {
                text.append(String.format(Locale.ROOT, "%n%s:%n%s", group.heading(), lines));
            }
        }
        return text.toString();
    }

    private static String description(CommandLine.Help command) {
        UsageMessageSpec usage = command.commandSpec().usageMessage();
        String[] text = usage.header().length > 0 ? usage.header() : usage.description();
        return text.length == 0 ? "" : text[0];
    }

    private static String line(String name, String description) {
        return String.format(Locale.ROOT, "  %-12s %s%n", name, description);
    }
}
