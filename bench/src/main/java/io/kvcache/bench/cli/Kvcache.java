package io.kvcache.bench.cli;

import io.kvcache.core.KvCache;
import io.kvcache.tiers.memory.MemoryRefusedException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;
import java.util.HashMap;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// The main class of the command line.
@Command(
        name = "kvcache",
        description = "An LLM-serving KV-cache store: run it, use it, plan with it, check it.",
        mixinStandardHelpOptions = true,
        versionProvider = Kvcache.Version.class)
public final class Kvcache implements Runnable {

    /// Columns of a usage message.
    private static final int USAGE_WIDTH = 110;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    /// Runs a command and exits: 0 done, 1 it failed, 2 the command was not understood.
    public static void main(String... arguments) {
        CommandLine line = commandLine();
        line.setExecutionStrategy(parsed -> {
            ToolLog.begin(parsed);
            return new CommandLine.RunLast().execute(parsed);
        });
        System.exit(line.execute(arguments));
    }

    /// The command line with all commands of [CommandTable]; its writers can be replaced.
    public static CommandLine commandLine() {
        CommandLine line = new CommandLine(new Kvcache());
        Map<String, CommandGroup> groups = new HashMap<>();
        for (CommandTable.Entry entry : CommandTable.entries()) {
            CommandLine command = new CommandLine(entry.command());
            groups.put(command.getCommandName(), entry.group());
            line.addSubcommand(command);
        }
        line.setUsageHelpWidth(USAGE_WIDTH);
        line.setParameterExceptionHandler((mistake, arguments) -> explain(mistake));
        line.setExecutionExceptionHandler((failure, failed, parsed) -> report(failure, failed));
        line.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_COMMAND_LIST, new GroupedHelp(groups));
        line.getHelpSectionMap().remove(UsageMessageSpec.SECTION_KEY_COMMAND_LIST_HEADING);
        return line;
    }

    /// Without a command there is nothing to do.
    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache: which command?");
    }

    /// The mistake, what was probably meant, and where to read on; not a screenful of options.
    private static int explain(ParameterException mistake) {
        CommandLine failed = mistake.getCommandLine();
        failed.getErr().println(mistake.getMessage());
        CommandLine.UnmatchedArgumentException.printSuggestions(mistake, failed.getErr());
        failed.getErr().println("See: " + failed.getCommandSpec().qualifiedName() + " --help");
        failed.getErr().flush();
        return CommandLine.ExitCode.USAGE;
    }

    /// What went wrong outside is one line; a bug is its stack trace.
    private static int report(Exception failure, CommandLine failed) {
        if (failure instanceof NoSuchFileException missing) {
            failed.getErr().println("kvcache: no such file: " + missing.getFile());
        } else if (failure instanceof AccessDeniedException denied) {
            failed.getErr()
                    .println("kvcache: " + denied.getFile()
                            + " may not be read or written by this user; check its owner" + " and mode");
        } else if (failure instanceof IOException || failure instanceof MemoryRefusedException) {
            failed.getErr().println("kvcache: " + failure.getMessage());
        } else {
            failure.printStackTrace(failed.getErr());
        }
        failed.getErr().flush();
        return CommandLine.ExitCode.SOFTWARE;
    }

    /// The jar's version, or a word that there is no jar.
    static final class Version implements CommandLine.IVersionProvider {

        @Override
        public String[] getVersion() {
            return new String[] {"kvcache " + text()};
        }

        static String text() {
            String version = KvCache.class.getPackage().getImplementationVersion();
            return version == null ? "(development)" : version;
        }
    }
}
