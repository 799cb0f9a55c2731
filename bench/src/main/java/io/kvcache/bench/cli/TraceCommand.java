package io.kvcache.bench.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache trace`: what makes traces.
@Command(
        name = "trace",
        description = "Make traces to plan with: import logs of requests.",
        mixinStandardHelpOptions = true,
        subcommands = TraceImportCommand.class)
final class TraceCommand implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache trace: it takes a command, import");
    }
}
