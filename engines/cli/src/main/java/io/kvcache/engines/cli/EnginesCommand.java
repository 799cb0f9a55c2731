package io.kvcache.engines.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache engines`: what inference engines gain from a store before their prefill.
@Command(
        name = "engines",
        description = "Ask inference engines with a store and without: demo shows it, bench measures it.",
        mixinStandardHelpOptions = true,
        subcommands = {EngineDemoCommand.class, EngineBenchCommand.class})
final class EnginesCommand implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache engines: it takes a command, demo or bench");
    }
}
