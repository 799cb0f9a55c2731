package io.kvcache.engines.cli;

import io.kvcache.core.baseline.Baseline;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

/// All commands of all class paths with their options: operators' scripts hang on them.
@Tag(Baseline.RECORDED_TAG)
final class CommandsBaselineTest {

    @Test
    void givenAllCommands_whenListed_thenTheyAndTheirOptionsAreAsRecorded() {
        List<String> lines = new ArrayList<>();
        list("", Kvcache.commandLine(), lines);
        Baseline.compare(CommandsBaselineTest.class, "commands.txt", lines);
    }

    private static void list(String path, CommandLine command, List<String> lines) {
        TreeSet<String> options = new TreeSet<>();
        for (OptionSpec option : command.getCommandSpec().options()) {
            options.add(String.join("/", option.names()));
        }
        lines.add((path + " " + String.join(" ", options)).strip());
        new TreeMap<>(command.getSubcommands()).forEach((name, each) -> list((path + " " + name).strip(), each, lines));
    }
}
